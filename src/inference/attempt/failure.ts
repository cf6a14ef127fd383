import { type ErrorStatus, GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { FailureClass, UpstreamError } from '../../providers/dialect.ts';
import type { Provider } from '../../providers/provider.ts';
import type { Candidate } from '../../routing/candidate.ts';
import { type OwnCredential, shownCredential } from '../../routing/own-credential.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import { withoutCredential } from './echoed-credentials.ts';

/** Places of our code that are logged because a decoder failed there, and the calls that each is logged with. */
const DECODER_FAULTS_LOGGED_MAX = 100;
const DECODER_FAULT_FRAMES_MAX = 8;

/** Failures after which the next endpoint is tried; the others are the caller's, and final for the model. */
export function fallsOver(failure: FailureClass): boolean {
  return failure !== 'invalid_request' && failure !== 'content_filter';
}

/**
 * Whether a failure says something about its endpoint. A status that refuses the request does so only where the text
 * proves the operator's account to be at fault: else one client's prompts could cool an endpoint down for all.
 */
export function isOfEndpoint(error: UpstreamError, request: ChatRequest): boolean {
  const { failure, status } = error;
  // The model's answer to this prompt: another request gets its call.
  if (failure === 'no_tool_call') return false;
  if (failure === 'not_found' && missesFile(error, request)) return false;
  const refuses = status === 400 || status === 413 || status === 422;
  return !refuses || failure === 'payment' || failure === 'credential';
}

/** What is not there is a file that the request names by its id, not the model. */
function missesFile({ message }: UpstreamError, { messages }: ChatRequest): boolean {
  return messages.some(
    ({ content }) =>
      Array.isArray(content) &&
      content.some((part) => {
        const id = part.type === 'file' ? part.file.file_id : undefined;
        return id != null && (message.includes(id) || /\bfiles?\b/i.test(message));
      }),
  );
}

const STATUS: Record<FailureClass, ErrorStatus> = {
  rate_limited: 429,
  overloaded: 503,
  unavailable: 502,
  timeout: 408,
  credential: 502,
  payment: 502,
  not_found: 502,
  conflict: 502,
  invalid_request: 400,
  content_filter: 403,
  state_rejected: 400,
  invalid_response: 502,
  no_tool_call: 502,
};

/** Prefixes that providers give their keys. A word of code (`api_key_invalid`) has no digit and stays. */
const LOOKS_LIKE_A_KEY =
  /\b(?:(?:sk|pk|rk|gsk|xai|key|api|nvapi|hf|r8|tgp|fw|csk|pplx)[-_][-\w*.]{8,}|A[KS]IA[A-Z0-9]{12,}|AIza[-\w]{20,})/g;

/** What of an upstream's words may be shown: no credential, nothing that looks like one, not more than a bound. */
export function redact(text: string, ...credentials: (string | undefined)[]): string {
  let shown = text.slice(0, limits.upstream_raw_chars_max * 2);
  for (const credential of credentials) shown = withoutCredential(shown, credential);
  shown = shown.replace(LOOKS_LIKE_A_KEY, (match) => (/[\d*]/.test(match) ? '[redacted]' : match));
  shown = shown.replace(/\b[Bb]earer\s+[-\w.~+/]+=*/g, 'Bearer [redacted]');
  return shown.length > limits.upstream_raw_chars_max ? `${shown.slice(0, limits.upstream_raw_chars_max)}…` : shown;
}

/** One attempt that failed, as the client may see it. */
export interface FailedAttempt {
  provider: Provider;
  /** The organization's own credential that it was tried with. */
  own?: OwnCredential | undefined;
  error: UpstreamError;
}

function statusOf(error: UpstreamError): ErrorStatus {
  if (error.failure === 'invalid_request' && (error.status === 413 || error.status === 422)) return error.status;
  // Whatever its wire makes of it, a provider that says to come back later is no broken one (specification, Errors).
  if (error.failure === 'unavailable' && error.status === 503) return 503;
  return STATUS[error.failure];
}

/** Headers of the operator's that carry a credential, by their names. */
const CREDENTIAL_HEADER = /auth|key|token|secret|cookie|password/i;

/** What was shown to the provider, and must not come back from it. */
function secretsOf({ provider, own }: FailedAttempt): (string | undefined)[] {
  const headers = Object.entries(provider.headers).filter(([name]) => CREDENTIAL_HEADER.test(name));
  return [own === undefined ? provider.credential : own.secret(), ...headers.map(([, value]) => value)];
}

function messageOf(attempt: FailedAttempt): string {
  const { error, provider, own } = attempt;
  const message = redact(error.message, ...secretsOf(attempt));
  switch (error.failure) {
    case 'invalid_request':
    case 'content_filter':
    case 'state_rejected':
    case 'timeout':
    case 'no_tool_call':
      return message;
    case 'rate_limited':
      return `${provider.name} is rate-limited: ${message}`;
    case 'credential':
    case 'payment':
      if (own !== undefined) return `${provider.name} refused your own credential ${own.name ?? own.label}: ${message}`;
      // The operator's account is at fault; what the provider says of it is for the operator's log.
      return `${provider.name} refused the gateway's credential or account`;
    default:
      // Without a connection nothing was returned: the sentence is ours, and says what happened.
      if (error.transport_code !== undefined || error.never_sent) return `${provider.name} did not answer: ${message}`;
      return `${provider.name} returned an error: ${message}`;
  }
}

/** Attempts that failed before the end of a request, in brief. */
export function earlierErrors(
  failed: readonly FailedAttempt[],
): { provider: string; code: number | null; reason: string; byok_id?: string }[] {
  return failed.map(({ provider, error, own }) => ({
    provider: provider.name,
    code: error.status,
    reason: error.failure,
    ...(own === undefined ? {} : { byok_id: own.id }),
  }));
}

/**
 * The last failure as the client's error. `Retry-After` is the shortest wait that any tried endpoint asked for. The
 * provider's own body goes to `metadata.raw`, without secrets; its headers never do.
 */
export function clientError(failed: readonly FailedAttempt[]): GatewayError {
  const last = failed.at(-1);
  if (last === undefined) return new GatewayError(503, 'No endpoint could be tried');
  const { error, provider, own } = last;
  const secret = own === undefined && (error.failure === 'credential' || error.failure === 'payment');
  const metadata: Record<string, unknown> = { provider_name: provider.name };
  if (own !== undefined) Object.assign(metadata, { is_byok: true, byok: shownCredential(own) });
  if (error.raw !== undefined && !secret) metadata['raw'] = redact(error.raw, ...secretsOf(last));
  if (error.native_code !== null) metadata['provider_code'] = redact(error.native_code, ...secretsOf(last));
  if (failed.length > 1) {
    metadata['previous_errors'] = earlierErrors(failed.slice(0, -1));
  }
  const waits = failed.flatMap(({ error: { retry_after_ms } }) => retry_after_ms ?? []);
  const status = statusOf(error);
  const headers: Record<string, string> = {};
  if (waits.length > 0 && (status === 429 || status === 503)) {
    const seconds = Math.max(1, Math.ceil(Math.min(...waits) / 1000));
    headers['retry-after'] = String(seconds);
    metadata['retry_after_seconds'] = seconds;
  }
  return new GatewayError(status, messageOf(last), { metadata, headers, cause: error });
}

export interface DecoderFaultLog {
  error(facts: object, message: string): void;
}

/** Logs the faults of our own code that were counted as a provider's failure. */
export type LogDecoderFault = (error: UpstreamError, candidate: Candidate) => void;

/** The `TypeError` or `RangeError` of a decoder behind a provider's failure; undefined if there is none. */
function faultOf(error: unknown): Error | undefined {
  for (let one = error; one instanceof Error; one = one.cause) {
    if (one instanceof TypeError || one instanceof RangeError) return one;
  }
  return undefined;
}

/** Where an error was thrown, innermost first. Its message is left out: V8 quotes values in some, and these are a provider's or a client's. */
function framesOf({ name, message, stack = '' }: Error): string[] {
  const head = `${name}: ${message}\n`;
  if (!stack.startsWith(head)) return [];
  const frames = stack.slice(head.length).split('\n', DECODER_FAULT_FRAMES_MAX);
  return frames.map((frame) => frame.trim());
}

/** Makes the log of decoders' faults: each place of the code once in the life of the process, since a provider can send the same answer again. */
export function createDecoderFaultLog(log: DecoderFaultLog): LogDecoderFault {
  const logged = new Set<string>();
  return (error, { provider, endpoint }) => {
    if (error.failure !== 'invalid_response' || error.cause === undefined) return;
    const fault = faultOf(error.cause);
    if (fault === undefined) return;
    const frames = framesOf(fault);
    const place = frames[0] ?? fault.name;
    if (logged.has(place) || logged.size >= DECODER_FAULTS_LOGGED_MAX) return;
    logged.add(place);
    log.error(
      { type: fault.name, frames, provider: provider.slug, endpoint: endpoint.id },
      "a decoder failed on a provider's answer: it counts as the provider's failure; this place is logged once",
    );
  };
}
