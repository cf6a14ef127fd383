import { chmodSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { limits } from '../limits.ts';

/** The list's file name inside the data directory: a hash or label of a key a line. */
const REVOKED_FILE = 'revoked-keys';

/** What names a key here: the hash of its secret, or its label. */
const NAME = /^[\x21-\x7e]{1,200}$/;

function read(data_dir: string): string[] {
  const file = join(data_dir, REVOKED_FILE);
  const { size } = statSync(file, { throwIfNoEntry: false }) ?? { size: 0 };
  if (size === 0) return [];
  if (size > limits.local_revocations_bytes_max) throw new Error(`${file} is too large`);
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((name) => NAME.test(name));
}

/** Adds a key to those that gateways on this data directory refuse, or takes it off. Gives why it cannot. */
export function revokeLocally(data_dir: string, name: string, is_revoked: boolean): string | undefined {
  if (!NAME.test(name)) return 'KEY must be the hash or the label of a key.';
  const others = read(data_dir).filter((one) => one !== name);
  if (others.length >= limits.local_revocations_max) {
    return `${limits.local_revocations_max} keys are revoked on this node already; remove some with --undo.`;
  }
  const file = join(data_dir, REVOKED_FILE);
  const made = `${file}.${process.pid}`;
  writeFileSync(made, [...others, ...(is_revoked ? [name] : []), ''].join('\n'), { mode: 0o600, flush: true });
  chmodSync(made, 0o600);
  renameSync(made, file);
  return undefined;
}

/** The keys that an operator has revoked on this node alone; looked at again and again, off the way of requests. */
export interface LocalRevocations {
  has(key: { hash: string; label: string }): boolean;
  stop(): void;
}

/** Follows the list of a data directory. One that cannot be read leaves what was read before, and `onFault` is called once. */
export function followRevocations(data_dir: string, onFault: (error: unknown) => void): LocalRevocations {
  const file = join(data_dir, REVOKED_FILE);
  let names: ReadonlySet<string> = new Set();
  let seen = '';
  let is_faulty = false;
  const look = () => {
    try {
      const { mtimeMs, ino, size } = statSync(file, { throwIfNoEntry: false }) ?? { mtimeMs: 0, ino: 0, size: 0 };
      const mark = `${ino} ${mtimeMs} ${size}`;
      if (mark === seen) return;
      names = new Set(read(data_dir));
      seen = mark;
      is_faulty = false;
    } catch (error) {
      if (!is_faulty) onFault(error);
      is_faulty = true;
    }
  };
  look();
  const timer = setInterval(look, limits.local_revocations_look_ms).unref();
  return {
    has: ({ hash, label }) => names.size > 0 && (names.has(hash) || names.has(label)),
    stop: () => clearInterval(timer),
  };
}
