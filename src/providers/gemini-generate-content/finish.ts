import type { FinishReason } from '../../schemas/inner.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';

/** https://ai.google.dev/api/generate-content#FinishReason; `MODEL_ARMOR` is on no list, but was recorded. */
const REASONS: Readonly<Record<string, FinishReason>> = lookupTable({
  STOP: 'stop',
  MAX_TOKENS: 'length',
  SAFETY: 'content_filter',
  RECITATION: 'content_filter',
  LANGUAGE: 'content_filter',
  BLOCKLIST: 'content_filter',
  PROHIBITED_CONTENT: 'content_filter',
  SPII: 'content_filter',
  MODEL_ARMOR: 'content_filter',
  MALFORMED_FUNCTION_CALL: 'error',
  UNEXPECTED_TOOL_CALL: 'error',
  TOO_MANY_TOOL_CALLS: 'error',
  MISSING_THOUGHT_SIGNATURE: 'error',
  MALFORMED_RESPONSE: 'error',
  IMAGE_OTHER: 'error',
  NO_IMAGE: 'error',
});

/** Reasons with which a call may be undeclared or broken: it must not be run. */
const BROKEN_CALLS: ReadonlySet<string> = new Set([
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
]);

/** Whether calls in an event with this reason are hidden from the client. */
export function hidesCalls(reason: string | undefined): boolean {
  return reason !== undefined && BROKEN_CALLS.has(reason);
}

/** The public finish reason. The wire's STOP covers calls as well; an unknown or missing reason is a stop if there was output. */
export function finishReason(reason: string | null, turn: { hasCalls(): boolean; hasOutput(): boolean }): FinishReason {
  const known = REASONS[reason ?? ''] ?? (reason?.startsWith('IMAGE_') ? 'content_filter' : undefined);
  if (known === undefined && !turn.hasOutput()) return 'error';
  if (known !== undefined && known !== 'stop') return known;
  return turn.hasCalls() ? 'tool_calls' : 'stop';
}
