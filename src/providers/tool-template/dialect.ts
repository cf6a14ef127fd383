/** Tools for endpoints without native tools: described in the prompt, called in the text of the answer. */
import type { AttemptState, ChatDialect } from '../dialect.ts';
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

/** The dialect with calls parsed from the text of its answers, if the attempt's state has a template. */
export function withToolTemplate(dialect: ChatDialect): ChatDialect {
  return {
    ...dialect,
    decodeResponse(body, state) {
      const chunks = dialect.decodeResponse(body, state);
      if (state['tool_template'] === undefined) return chunks;
      const reader = readerOf(state);
      return [...reader.take(chunks), ...reader.end()];
    },
    createStreamDecoder(state) {
      const decoder = dialect.createStreamDecoder(state);
      if (state['tool_template'] === undefined) return decoder;
      const reader = readerOf(state);
      return {
        push: (frame) => reader.take(decoder.push(frame)),
        isWhole: () => decoder.isWhole(),
        end: () => [...reader.take(decoder.end()), ...reader.end()],
      };
    },
  };
}
