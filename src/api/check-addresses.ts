import { isIP } from 'node:net';
import { invalidField } from '../errors.ts';
import { isPublicAddress } from '../providers/addresses.ts';
import { listedAs } from '../providers/fetch-media.ts';
import { type AddressKind, eachAddress, type FieldPath, fieldName } from '../providers/media-addresses.ts';

/** What the operator lets requests point at beside the public internet. */
export interface AddressRules {
  /** `host` or `host:port`, in lower case. */
  private_hosts: readonly string[];
  /** `s3://name` or `gs://name`: what providers read there, they read with the operator's credential. */
  buckets: readonly string[];
}

/** Names that resolve inside a network alone (RFC 6761, RFC 6762, RFC 8375, and ICANN's reservation of `internal`). */
const INSIDE = /(?:^|\.)(?:localhost|local|internal|home\.arpa)$/;

/** Readers of addresses differ on these: some drop them, some end the host there. */
const CONTROL = /\p{Cc}/u;
const AMBIGUOUS_HOST = /[\s\\]/;
const AUTHORITY = /^https?:\/\/([^/?#]*)/i;
const HEAD_CHARS = 4_096;

const BASE64_HEAD = /^[A-Za-z0-9+/_=\s-]*$/;
/** No path of a file is longer (PATH_MAX of Linux). */
const PATH_CHARS_MAX = 4_096;

/** Whether no machine on the public internet can be meant, as far as the text itself tells. */
function isInside({ hostname }: URL): boolean {
  const host = hostname.replace(/\.$/, '');
  const literal = host.startsWith('[') ? host.slice(1, -1) : host;
  if (isIP(literal) !== 0) return !isPublicAddress(literal);
  return !host.includes('.') || INSIDE.test(host);
}

/** What is wrong with an address of the web; undefined: nothing that its text shows. */
function webFault(address: string, rules: AddressRules): string | undefined {
  const head = address.slice(0, HEAD_CHARS);
  const [, authority = ''] = AUTHORITY.exec(head) ?? [];
  if (CONTROL.test(head) || AMBIGUOUS_HOST.test(authority)) {
    return 'must be a URL without control characters, and without spaces and backslashes in its host';
  }
  if (authority.includes('@')) return 'must be a URL without a user name or password';
  const url = URL.parse(address);
  if (url === null) return 'must be a URL';
  if (!isInside(url) || listedAs(rules, url) !== undefined) return undefined;
  return "must be on the public internet, or on a host that the operator lists in media.private_hosts; or send the file's data";
}

/** Whether a text without a scheme may be data, and no path of a file. */
function mayBeBase64(text: string): boolean {
  if (text.startsWith('/') && text.length < PATH_CHARS_MAX) return false;
  return BASE64_HEAD.test(text.slice(0, HEAD_CHARS));
}

function faultOf(address: string, kind: AddressKind, rules: AddressRules): string | undefined {
  if (/^data:/i.test(address)) return undefined;
  if (/^https?:\/\//i.test(address)) return webFault(address, rules);
  if (/^(?:s3|gs):\/\//i.test(address)) {
    if (rules.buckets.some((bucket) => address.startsWith(`${bucket}/`))) return undefined;
    return 'must be in a bucket that the operator lists in media.buckets, or an https, http or data URL';
  }
  if (kind === 'data') return mayBeBase64(address) ? undefined : 'must be base64, or an https, http or data URL';
  return 'must be an https, http or data URL';
}

/**
 * Refuses a body that points at what nobody is to fetch for a client, in any field of any client API: other schemes than https,
 * http and data, and hosts that can only be inside a network. Throws a 400 that names the field. What names resolve to is checked
 * by who fetches: see `createMediaFetcher`.
 */
export function checkAddresses(body: unknown, rules: AddressRules): void {
  eachAddress(body, (address, path: FieldPath, kind) => {
    // Clients write nothing for what they leave out.
    if (address === '') return;
    const fault = faultOf(address, kind, rules);
    if (fault !== undefined) throw invalidField(fieldName(path), fault);
  });
}
