import type { FinishReason } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { asObject, asText } from '../shared/json-shape.ts';

/** The wire's finish reason: the reason of an incomplete response, else its status. */
export function nativeFinishReason(response: JsonObject): string | null {
  return asText(asObject(response['incomplete_details'])?.['reason']) || asText(response['status']) || null;
}

/**
 * The public finish reason. The wire has none for calls: it follows from their presence. An unknown status (`complete`, seen on
 * Bedrock) ends an answer with output like `completed`.
 */
export function finishReason(response: JsonObject, turn: { hasCalls(): boolean; hasOutput(): boolean }): FinishReason {
  const { status } = response;
  if (status === 'failed' || status === 'cancelled') return 'error';
  if (status === 'incomplete') {
    const reason = asText(asObject(response['incomplete_details'])?.['reason']);
    return reason === 'content_filter' ? 'content_filter' : 'length';
  }
  if (status !== 'completed' && !turn.hasOutput()) return 'error';
  return turn.hasCalls() ? 'tool_calls' : 'stop';
}
