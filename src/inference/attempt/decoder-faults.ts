import { limits } from '../../limits.ts';
import type { UpstreamError } from '../../providers/dialect.ts';
import type { Candidate } from '../../routing/candidate.ts';

export interface DecoderFaultLog {
  error(facts: object, message: string): void;
}

/** Logs the faults of our own code that were counted as a provider's failure. */
export type LogDecoderFault = (error: UpstreamError, candidate: Candidate) => void;

/** The `TypeError` or `RangeError` of a decoder behind a provider's failure; undefined: there is none. */
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
  const frames = stack.slice(head.length).split('\n', limits.decoder_fault_frames_max);
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
    if (logged.has(place) || logged.size >= limits.decoder_faults_logged_max) return;
    logged.add(place);
    log.error(
      { type: fault.name, frames, provider: provider.slug, endpoint: endpoint.id },
      "a decoder failed on a provider's answer: it counts as the provider's failure; this place is logged once",
    );
  };
}
