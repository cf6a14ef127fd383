import { invalidField } from '../../errors.ts';
import type { ReasoningOptions, ResponseFormat } from '../../schemas/inner.ts';
import type { ResponsesRequestBody } from '../../schemas/responses.ts';

type Text = NonNullable<ResponsesRequestBody['text']>;

/** Translates `text.format`, which is flat here and nested in chat; undefined for the default. */
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

/** The fields of `reasoning` that chat has. */
export function reasoningOf(reasoning: ResponsesRequestBody['reasoning']): ReasoningOptions | undefined {
  if (reasoning == null) return undefined;
  const { effort, max_tokens, summary, enabled, exclude } = reasoning;
  if (effort && typeof max_tokens === 'number') {
    throw invalidField('reasoning', 'may have effort or max_tokens, not both');
  }
  const options: ReasoningOptions = {};
  if (effort != null) options.effort = effort;
  if (max_tokens != null) options.max_tokens = max_tokens;
  if (summary != null) options.summary = summary;
  if (enabled != null) options.enabled = enabled;
  if (exclude != null) options.exclude = exclude;
  return Object.keys(options).length === 0 ? undefined : options;
}
