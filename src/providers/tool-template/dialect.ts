/** Tools for endpoints without native tools: described in the prompt, called in the text of the answer. */
import type { ChatChunk } from '../../schemas/inner.ts';
import type { JsonValue } from '../../schemas/json.ts';
import type { AttemptState, ChatDialect, StreamDecoder } from '../dialect.ts';
import type { ToolTemplate } from './markup.ts';
import { TemplateReader } from './reader.ts';

export { needsTemplate, templated } from './template.ts';

function readerOf(state: AttemptState): TemplateReader {
  return new TemplateReader(state['tool_template'] as ToolTemplate, state.generation_id);
}

/** Whether the answer to this attempt must contain a call, which its prompt can only request. */
export function requiresCall(state: Omit<AttemptState, 'generation_id'>): boolean {
  return (state['tool_template'] as ToolTemplate | undefined)?.is_forced === true;
}

/**
 * Decodes a whole answer to an attempt whose prompt describes the tools: calls are parsed from its text. If it throws, `chunks` has what
 * the dialect decoded before the fault.
 */
export function decodeTemplated(
  dialect: ChatDialect,
  body: JsonValue,
  state: AttemptState,
  chunks: ChatChunk[] = [],
): ChatChunk[] {
  const reader = readerOf(state);
  return [...reader.take(dialect.decodeResponse(body, state, chunks)), ...reader.end()];
}

/** The same for a stream. */
export function createTemplatedDecoder(dialect: ChatDialect, state: AttemptState): StreamDecoder {
  const decoder = dialect.createStreamDecoder(state);
  const reader = readerOf(state);
  return {
    push: (frame) => reader.take(decoder.push(frame)),
    isWhole: () => decoder.isWhole(),
    end: () => [...reader.take(decoder.end()), ...reader.end()],
  };
}
