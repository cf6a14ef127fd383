import { type ErrorStatus, GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { FailureClass, UpstreamError } from '../../providers/dialect.ts';
import type { Provider } from '../../providers/provider.ts';
import type { Candidate } from '../../routing/candidate.ts';
import { type OwnCredential, shownCredential } from '../../routing/own-credential.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import { withoutCredential } from './echoed-credentials.ts';

/** The most places in the code whose decoder faults are logged. */
const DECODER_FAULTS_LOGGED_MAX = 100;
/** Stack frames in the log of one fault. */
const DECODER_FAULT_FRAMES_MAX = 8;

/** Whether the next endpoint is tried after this failure. The others are caused by the request, and final for the model. */
export function fallsOver(failure: FailureClass): boolean {
  return failure !== 'invalid_request' && failure !== 'content_filter';
}

/**
 * Whether a failure counts against its endpoint. A status that refuses the request counts only if the failure is one of the operator's
 * account: otherwise the prompts of one client could cool an endpoint down for all.
 */
export function isOfEndpoint(error: UpstreamError, request: ChatRequest): boolean {
  const { failure, status } = error;
  // The model's answer to this prompt. Other requests may get their call.
  if (failure === 'no_tool_call') return false;
  if (failure === 'not_found' && missesFile(error, request)) return false;
  const refuses = status === 400 || status === 413 || status === 422;
  return !refuses || failure === 'payment' || failure === 'credential';
}

/** Whether a `not_found` failure is about a file that the request names by its id, not about the model. */
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

/** Texts with the prefixes of providers' keys. A match without a digit, like `api_key_invalid`, is not redacted. */
const LOOKS_LIKE_A_KEY =
  /\b(?:(?:sk|pk|rk|gsk|xai|key|api|nvapi|hf|r8|tgp|fw|csk|pplx)[-_][-\w*.]{8,}|A[KS]IA[A-Z0-9]{12,}|AIza[-\w]{20,})/g;

/** An upstream's text for clients: without credentials and texts that look like one, and cut at a bound. */
export function redact(text: string, ...credentials: (string | undefined)[]): string {
  let shown = text.slice(0, limits.upstream_raw_chars_max * 2);
  for (const credential of credentials) shown = withoutCredential(shown, credential);
  shown = shown.replace(LOOKS_LIKE_A_KEY, (match) => (/[\d*]/.test(match) ? '[redacted]' : match));
  shown = shown.replace(/\b[Bb]earer\s+[-\w.~+/]+=*/g, 'Bearer [redacted]');
  return shown.length > limits.upstream_raw_chars_max ? `${shown.slice(0, limits.upstream_raw_chars_max)}…` : shown;
}

/** One failed attempt, for the client's error. */
export interface FailedAttempt {
  provider: Provider;
  /** The organization's own credential that it was tried with. */
  own?: OwnCredential | undefined;
  error: UpstreamError;
}

function statusOf(error: UpstreamError): ErrorStatus {
  if (error.failure === 'invalid_request' && (error.status === 413 || error.status === 422)) return error.status;
  // On every wire, a provider that is temporarily unavailable stays a 503 (specification, Errors).
  if (error.failure === 'unavailable' && error.status === 503) return 503;
  return STATUS[error.failure];
}

/** Names of the operator's headers that carry a credential. */
const CREDENTIAL_HEADER = /auth|key|token|secret|cookie|password/i;

/** The secrets that were sent to the provider and must not appear in its error. */
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
      // The operator's account is at fault: the provider's message is only for the operator's log.
      return `${provider.name} refused the gateway's credential or account`;
    default:
      // Without a connection, the provider returned nothing: the message is the gateway's.
      if (error.transport_code !== undefined || error.never_sent) return `${provider.name} did not answer: ${message}`;
      return `${provider.name} returned an error: ${message}`;
  }
}

/** A summary of the failed attempts of a request. */
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
 * The last failure as the client's error. `Retry-After` is the shortest wait of all tried endpoints. `metadata.raw` has the provider's
 * body without secrets. The provider's headers are never shown.
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

/** Logs faults of the gateway's decoders that were counted as a provider's failure. */
export type LogDecoderFault = (error: UpstreamError, candidate: Candidate) => void;

/** The `TypeError` or `RangeError` of a decoder behind a provider's failure; undefined if there is none. */
function faultOf(error: unknown): Error | undefined {
  for (let one = error; one instanceof Error; one = one.cause) {
    if (one instanceof TypeError || one instanceof RangeError) return one;
  }
  return undefined;
}

/** The stack frames of an error, innermost first. Without its message, in which V8 may quote values of a provider or a client. */
function framesOf({ name, message, stack = '' }: Error): string[] {
  const head = `${name}: ${message}\n`;
  if (!stack.startsWith(head)) return [];
  const frames = stack.slice(head.length).split('\n', DECODER_FAULT_FRAMES_MAX);
  return frames.map((frame) => frame.trim());
}

/** Creates the log of decoder faults. Each place in the code is logged once in the life of the process, since answers may repeat. */
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
