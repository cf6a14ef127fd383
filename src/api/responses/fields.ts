import { invalidField } from '../../errors.ts';
import type { ReasoningOptions, ResponseFormat } from '../../schemas/inner.ts';
import type { ResponsesRequestBody } from '../../schemas/responses.ts';

type Text = NonNullable<ResponsesRequestBody['text']>;

/** `text.format`, which is flat where chat's is nested; undefined where it says no more than nothing. */
export function formatOf(format: Text['format']): ResponseFormat | undefined {
  if (format == null || format.type === 'text') return undefined;
  if (format.type !== 'json_schema') return { type: format.type };
  const { name, schema, description, strict } = format;
  return {
    type: 'json_schema',
    json_schema: {
      name,
      schema,
      ...(description == null ? {} : { description }),
      ...(strict == null ? {} : { strict }),
    },
  } as ResponseFormat;
}

/** The part of `reasoning` that chat knows. */
export function reasoningOf(reasoning: ResponsesRequestBody['reasoning']): ReasoningOptions | undefined {
  if (reasoning == null) return undefined;
  const { effort, max_tokens, summary, enabled, exclude } = reasoning;
  if (effort && typeof max_tokens === 'number') {
    throw invalidField('reasoning', 'may have effort or max_tokens, not both');
  }
  const wish: ReasoningOptions = {};
  if (effort != null) wish.effort = effort;
  if (max_tokens != null) wish.max_tokens = max_tokens;
  if (summary != null) wish.summary = summary;
  if (enabled != null) wish.enabled = enabled;
  if (exclude != null) wish.exclude = exclude;
  return Object.keys(wish).length === 0 ? undefined : wish;
}
