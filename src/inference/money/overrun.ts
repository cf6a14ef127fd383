import { limits } from '../../limits.ts';
import { UpstreamError } from '../../providers/dialect.ts';
import { ends } from '../../schemas/by-choice.ts';
import type { ChatChunk } from '../../schemas/inner.ts';
import type { OpenStream } from '../attempt/attempt.ts';
import { mayGoOn } from '../attempt/attempts.ts';
import type { ChatAttempt } from '../attempt/chat-attempts.ts';
import { abortStopsBilling, CallCancelled } from '../attempt/exchange.ts';
import type { SettlementLog } from './settlement.ts';

/** Ends an answer from our side, as if the output bound had been reached: the ends of all its choices that are open. */
export function cut(attempt: ChatAttempt, reason: string, log: SettlementLog): ChatChunk[] {
  const { call, meter, candidate } = attempt;
  const chunks = ends(meter.open_choices, { delta: {}, finish_reason: 'length', native_finish_reason: null });
  for (const chunk of chunks) meter.chunk(chunk);
  attempt.report = [...attempt.report, { kind: 'clamped', field: 'max_tokens', reason }];
  const tokens = meter.outputTokens();
  log.warn({ generation: call.generation_id, endpoint: candidate.endpoint.id, tokens, reason }, 'an answer was cut');
  return chunks;
}

/** After a cut, where closing the connection does not end the bill: reads on for a bounded time, so that what is billed is known. */
export async function readOn(stream: OpenStream, attempt: ChatAttempt): Promise<void> {
  const { call, meter, candidate } = attempt;
  if (abortStopsBilling(candidate, call)) {
    stream.close();
    return;
  }
  const late = setTimeout(() => stream.close(), limits.drain_ms_max);
  attempt.mayGoOn = true;
  try {
    const { later } = stream;
    while (!later.ended) {
      const coming = later.coming();
      if (coming !== undefined) await coming;
      for (const { finish_reason: _theirs, ...chunk } of later.take() ?? []) meter.chunk(chunk);
      if (meter.outputTokens() > limits.drain_tokens_max) return;
    }
    attempt.mayGoOn = false;
  } catch (error) {
    if (!(error instanceof UpstreamError || error instanceof CallCancelled)) throw error;
    if (error instanceof UpstreamError) attempt.mayGoOn = mayGoOn(error, candidate, call);
  } finally {
    clearTimeout(late);
  }
}
