import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A certification authority of its own, and a certificate by it. */
export interface PrivateCa {
  /** In PEM. */
  ca: string;
  ca_file: string;
  cert: string;
  key: string;
  remove(): void;
}

/** Makes them with OpenSSL for these names, such as `DNS:upstream.test` or `IP:192.0.2.1`. */
export function privateCa(names: readonly string[]): PrivateCa {
  const folder = mkdtempSync(join(tmpdir(), 'private-ca-'));
  const file = (name: string) => join(folder, name);
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=Private CA');
  openssl('req', ...key, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=server');
  writeFileSync(file('names'), `subjectAltName=${names.join(',')}\n`);
  const by = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'names'];
  openssl('x509', '-req', '-in', 'server.csr', ...by, '-out', 'server.pem');
  return {
    ca: readFileSync(file('ca.pem'), 'utf8'),
    ca_file: file('ca.pem'),
    cert: readFileSync(file('server.pem'), 'utf8'),
    key: readFileSync(file('server.key'), 'utf8'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
