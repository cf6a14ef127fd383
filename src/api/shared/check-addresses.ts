import { isIP } from 'node:net';
import { invalidField } from '../../errors.ts';
import { limits } from '../../limits.ts';
import {
  type AddressKind,
  addressSteps,
  eachAddress,
  type FieldPath,
  fieldName,
} from '../../providers/shared/media-addresses.ts';
import { isPublicAddress } from '../../providers/transport/addresses.ts';
import { listedAs } from '../../providers/transport/fetch-media.ts';

/** Private addresses and buckets that the operator lets requests reference. */
export interface AddressRules {
  /** `host` or `host:port`, in lower case. */
  private_hosts: readonly string[];
  /** `s3://name` or `gs://name`, which providers read with the operator's credential. */
  buckets: readonly string[];
}

/**
 * Host names that resolve only inside a network (RFC 6761, RFC 6762 with appendix G, RFC 8375, ICANN's reservation of `internal`), and
 * names of Kubernetes services.
 */
const INSIDE = /(?:^|\.)(?:localhost|localdomain|local|internal|intranet|private|corp|home|lan|svc|home\.arpa)$/;

/**
 * Fields by which operators' servers make each other connect to other machines, read local paths, or run code. Clients must not send them.
 */
const SERVER_FIELDS = [
  'kv_transfer_params', // vLLM
  'ec_transfer_params',
  'logits_processors',
  'bootstrap_host', // SGLang
  'bootstrap_port',
  'lora_path',
  'custom_logit_processor',
  'disaggregated_params', // TensorRT-LLM
];

/** Control characters, which readers of addresses treat differently: some drop them, some end the host there. */
const CONTROL = /\p{Cc}/u;
const AMBIGUOUS_HOST = /[\s\\]/;
const AUTHORITY = /^https?:\/\/([^/?#]*)/i;
/** An address whose host begins as IPv6. */
const BRACKETED = /^[a-z][a-z0-9+.-]{0,20}:[\\/]{2}[^\\/?#\s]{0,256}\[/i;
const HEAD_CHARS = 4_096;

const WEB_SCHEME = /^(?:https?|wss?|ftp):$/;

const BASE64_HEAD = /^[A-Za-z0-9+/_=\s-]*$/;
/** The longest path of a file (PATH_MAX of Linux). */
const PATH_CHARS_MAX = 4_096;

/** Whether the host name alone shows that the host is not on the public internet. */
function isInside({ hostname }: URL): boolean {
  const host = hostname.replace(/\.$/, '');
  const literal = host.startsWith('[') ? host.slice(1, -1) : host;
  if (isIP(literal) !== 0) return !isPublicAddress(literal);
  return !host.includes('.') || INSIDE.test(host);
}

/** What is wrong with a web address; undefined if its text shows nothing wrong. */
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

/** Whether a text without a scheme may be base64 data rather than a file path. */
function mayBeBase64(text: string): boolean {
  if (text.startsWith('/') && text.length < PATH_CHARS_MAX) return false;
  return BASE64_HEAD.test(text.slice(0, HEAD_CHARS));
}

/** What is wrong with the name of a machine in a field that no known API has. */
function hostFault(host: string, rules: AddressRules): string | undefined {
  const url = URL.parse(`http://${host}`);
  if (url === null || !isInside(url) || listedAs(rules, url) !== undefined) return undefined;
  return 'must be on the public internet, or a host that the operator lists in media.private_hosts';
}

/** What is wrong with an address in a field whose name does not announce one: only that it leads into a network. */
function otherFault(text: string, rules: AddressRules): string | undefined {
  const head = text.slice(0, HEAD_CHARS).trim();
  if (/^file:\S/i.test(head)) return 'must not be the address of a local file';
  // Two slashes also start a comment and base64.
  const isRelative = /^[\\/]{2}/.test(head);
  const url = URL.parse(isRelative ? `http:${head}` : head);
  // Some readers accept an IPv6 address with a zone, which is always inside a network; the URL standard does not.
  if (url === null && BRACKETED.test(head)) return 'must not be an address inside a network';
  if (url === null || url.hostname === '' || listedAs(rules, url) !== undefined) return undefined;
  // In relative addresses and in other schemes, whose addresses are often names, a single word is not a host.
  const isWeb = !isRelative && WEB_SCHEME.test(url.protocol);
  const isMachine = isWeb || url.hostname.includes('.') || url.hostname.startsWith('[');
  return isMachine && isInside(url) ? 'must not be an address inside a network' : undefined;
}

function faultOf(address: string, kind: AddressKind, rules: AddressRules): string | undefined {
  if (kind === 'host') return hostFault(address, rules);
  if (/^data:/i.test(address)) return undefined;
  if (kind !== 'other' && /^https?:\/\//i.test(address)) return webFault(address, rules);
  if (/^(?:s3|gs):\/\//i.test(address)) {
    if (rules.buckets.some((bucket) => address.startsWith(`${bucket}/`))) return undefined;
    return 'must be in a bucket that the operator lists in media.buckets, or an https, http or data URL';
  }
  if (kind === 'other') return otherFault(address, rules);
  if (kind === 'data') return mayBeBase64(address) ? undefined : 'must be base64, or an https, http or data URL';
  return 'must be an https, http or data URL';
}

/** Checks the fields that are sent on to endpoints: unknown fields of the body, and the options of providers. */
function checkOptions(body: unknown, prefix: string): void {
  if (typeof body !== 'object' || body === null) return;
  const fields = body as Record<string, unknown>;
  for (let at = 0; at < SERVER_FIELDS.length; at += 1) {
    const name = SERVER_FIELDS[at]!;
    if (fields[name] === undefined || fields[name] === null) continue;
    throw invalidField(`${prefix}${name}`, 'must not be sent: it is only for the servers of a provider');
  }
  if (prefix !== '' || fields['provider'] == null) return;
  const { options } = fields['provider'] as Record<string, unknown>;
  if (typeof options !== 'object' || options === null) return;
  for (const [slug, sent] of Object.entries(options)) checkOptions(sent, `provider.options.${slug}.`);
}

/** Counts and checks the addresses of one body. */
function checkOf(rules: AddressRules): Parameters<typeof eachAddress>[1] {
  let count = 0;
  return (address: string, path: FieldPath, kind: AddressKind) => {
    // Clients send an empty text for an address that is not set.
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
  };
}

/**
 * Checks the addresses in a body, in every field of every client API: schemes other than https, http and data, hosts inside a
 * network, and fields between servers are refused. Throws a 400 that names the field. The code that fetches an address checks
 * what its name resolves to (`createMediaFetcher`).
 */
export function checkAddresses(body: unknown, rules: AddressRules): void {
  checkOptions(body, '');
  eachAddress(body, checkOf(rules));
}

/** The same for a long body. Yields to other requests between parts of it. */
export function* addressChecks(body: unknown, rules: AddressRules): Generator<void, void, undefined> {
  checkOptions(body, '');
  yield* addressSteps(body, checkOf(rules));
}
