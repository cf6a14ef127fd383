import { limits } from '../../limits.ts';
import { UpstreamError } from '../../providers/dialect.ts';
import { ends } from '../../schemas/by-choice.ts';
import type { ChatChunk } from '../../schemas/inner.ts';
import type { OpenStream } from '../attempt/attempt.ts';
import { mayGoOn } from '../attempt/attempts.ts';
import { abortStopsBilling, CallCancelled } from '../attempt/exchange.ts';
import type { Answered, CallState } from '../call-state.ts';
import type { Meter } from './meter.ts';
import type { SettlementLog } from './settlement.ts';

type Metered = Answered & { meter: Meter };

/** Ends an answer from our side, as if the output bound had been reached: the ends of all its choices that are open. */
export function cut(
  session: CallState,
  { meter, candidate }: Metered,
  reason: string,
  log: SettlementLog,
): ChatChunk[] {
  const chunks = ends(meter.open_choices, { delta: {}, finish_reason: 'length', native_finish_reason: null });
  for (const chunk of chunks) meter.chunk(chunk);
  session.report = [...session.report, { kind: 'clamped', field: 'max_tokens', reason }];
  const tokens = meter.outputTokens();
  log.warn(
    { generation: session.call.generation_id, endpoint: candidate.endpoint.id, tokens, reason },
    'an answer was cut',
  );
  return chunks;
}

/** After a cut, where closing the connection does not end the bill: reads on for a bounded time, so that what is billed is known. */
export async function readOn(session: CallState, stream: OpenStream, answered: Metered): Promise<void> {
  const { meter, candidate } = answered;
  if (abortStopsBilling(candidate, session.call)) {
    stream.close();
    return;
  }
  const late = setTimeout(() => stream.close(), limits.drain_ms_max);
  answered.may_go_on = true;
  try {
    const { later } = stream;
    while (!later.ended) {
      const coming = later.coming();
      if (coming !== undefined) await coming;
      for (const { finish_reason: _theirs, ...chunk } of later.take() ?? []) meter.chunk(chunk);
      if (meter.outputTokens() > limits.drain_tokens_max) return;
    }
    answered.may_go_on = false;
  } catch (error) {
    if (!(error instanceof UpstreamError || error instanceof CallCancelled)) throw error;
    if (error instanceof UpstreamError) answered.may_go_on = mayGoOn(error, candidate, session.call);
  } finally {
    clearTimeout(late);
  }
}
