/** Tools for endpoints without native tools: described in the prompt, called in the text of the answer. */
import type { AttemptState, ChatDialect } from '../dialect.ts';
import type { ToolTemplate } from './markup.ts';
import { TemplateReader } from './reader.ts';

export { needsTemplate, templated } from './template.ts';

function readerOf(state: AttemptState): TemplateReader | undefined {
  const template = state['tool_template'] as ToolTemplate | undefined;
  return template === undefined ? undefined : new TemplateReader(template, state.generation_id);
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
      const reader = readerOf(state);
      return reader === undefined ? chunks : [...reader.take(chunks), ...reader.end()];
    },
    createStreamDecoder(state) {
      const decoder = dialect.createStreamDecoder(state);
      const reader = readerOf(state);
      if (reader === undefined) return decoder;
      return {
        push: (frame) => reader.take(decoder.push(frame)),
        isWhole: () => decoder.isWhole(),
        end: () => [...reader.take(decoder.end()), ...reader.end()],
      };
    },
  };
}
