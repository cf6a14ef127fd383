import { isIP } from 'node:net';
import { invalidField } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { type AddressKind, eachAddress, type FieldPath, fieldName } from '../../providers/shared/media-addresses.ts';
import { isPublicAddress } from '../../providers/transport/addresses.ts';
import { listedAs } from '../../providers/transport/fetch-media.ts';

/** What the operator lets requests point at beside the public internet. */
export interface AddressRules {
  /** `host` or `host:port`, in lower case. */
  private_hosts: readonly string[];
  /** `s3://name` or `gs://name`: what providers read there, they read with the operator's credential. */
  buckets: readonly string[];
}

/**
 * Names that resolve inside a network alone (RFC 6761, RFC 6762 with its appendix G, RFC 8375, ICANN's reservation of `internal`),
 * and those of services of Kubernetes.
 */
const INSIDE = /(?:^|\.)(?:localhost|localdomain|local|internal|intranet|private|corp|home|lan|svc|home\.arpa)$/;

/**
 * Fields of model servers by which whoever sends them has the server connect to other machines, read a path of its own, or run code. They
 * are between the servers of one operator.
 */
const OF_SERVERS = new Set([
  'kv_transfer_params', // vLLM
  'ec_transfer_params',
  'logits_processors',
  'bootstrap_host', // SGLang
  'bootstrap_port',
  'lora_path',
  'custom_logit_processor',
  'disaggregated_params', // TensorRT-LLM
]);

/** Readers of addresses differ on these: some drop them, some end the host there. */
const CONTROL = /\p{Cc}/u;
const AMBIGUOUS_HOST = /[\s\\]/;
const AUTHORITY = /^https?:\/\/([^/?#]*)/i;
const HEAD_CHARS = 4_096;

const BASE64_HEAD = /^[A-Za-z0-9+/_=\s-]*$/;
/** No path of a file is longer (PATH_MAX of Linux). */
const PATH_CHARS_MAX = 4_096;

/** Whether no machine on the public internet can be meant, by the text alone. */
function isInside({ hostname }: URL): boolean {
  const host = hostname.replace(/\.$/, '');
  const literal = host.startsWith('[') ? host.slice(1, -1) : host;
  if (isIP(literal) !== 0) return !isPublicAddress(literal);
  return !host.includes('.') || INSIDE.test(host);
}

/** What is wrong with an address of the web; undefined: nothing that its text shows. */
function webFault(address: string, rules: AddressRules): string | undefined {
  if (address.length > limits.address_chars_max)
    return `must be a URL of at most ${limits.address_chars_max} characters`;
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

/** Whether a value has members by name. */
const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Looks through what a body hands on to its endpoint: its own fields, and the options of providers. */
function checkOptions(body: unknown, prefix: string): void {
  if (!isRecord(body)) return;
  for (const name of OF_SERVERS) {
    if (body[name] === undefined || body[name] === null) continue;
    throw invalidField(`${prefix}${name}`, 'must not be sent: it is only for the servers of a provider');
  }
  if (prefix !== '' || !isRecord(body['provider'])) return;
  const { options } = body['provider'];
  if (!isRecord(options)) return;
  for (const [slug, fields] of Object.entries(options)) checkOptions(fields, `provider.options.${slug}.`);
}

/**
 * Refuses a body that points at what nobody is to fetch for a client, in any field of any client API: other schemes than https,
 * http and data, hosts that can only be inside a network, and fields that servers of one operator send each other. Throws a 400 that names the field. What names resolve to is checked
 * by who fetches: see `createMediaFetcher`.
 */
export function checkAddresses(body: unknown, rules: AddressRules): void {
  checkOptions(body, '');
  let count = 0;
  eachAddress(body, (address, path: FieldPath, kind) => {
    // Clients write nothing for what they leave out.
    if (address === '') return;
    count += 1;
    if (count > limits.addresses_max) {
      throw invalidField(
        fieldName(path),
        `must not be there: a request has at most ${limits.addresses_max} addresses and files`,
      );
    }
    const fault = faultOf(address, kind, rules);
    if (fault !== undefined) throw invalidField(fieldName(path), fault);
  });
}
