import type { Endpoint } from '../../catalog/model.ts';
import { limits } from '../../limits.ts';
import { contentsOf } from '../../schemas/contents.ts';
import type { ChatRequest } from '../../schemas/inner.ts';

/** The default bound of a request under a spend limit, on every wire, if the model's maximum is not known. */
export const OUTPUT_TOKENS_UNKNOWN = 16_384;

/** The output bound of a request that sets none; `source` is its origin as reports name it. */
export interface DefaultBound {
  tokens: number;
  source: string;
}

/** Context tokens left beside the prompt: each character counts as a token; tools, schemas and media are not counted. */
function remainingContext(request: ChatRequest, contextLength: number): number {
  const { chars, has_more } = contentsOf(request);
  const remaining = contextLength - chars - limits.template_tokens_max - limits.template_tools_tokens_max;
  const isCounted = !has_more && !request.tools?.length && request.response_format == null;
  return isCounted ? remaining : Math.min(remaining, Math.floor(contextLength / 2));
}

/**
 * The model's maximum, or a fixed default if it is not known: providers refuse a higher bound. Many servers also refuse a bound that
 * does not fit into the context beside the prompt. If the prompt seems to leave less than the smallest default, that is used:
 * a prompt has fewer tokens than characters.
 */
export function defaultBound(
  request: ChatRequest,
  { max_completion_tokens, context_length }: Pick<Endpoint, 'max_completion_tokens' | 'context_length'>,
): DefaultBound {
  const most =
    max_completion_tokens === undefined
      ? { tokens: OUTPUT_TOKENS_UNKNOWN, source: "the default, because the model's maximum is not known" }
      : { tokens: max_completion_tokens, source: "the model's maximum" };
  if (context_length === undefined) return most;
  const least = Math.min(limits.output_tokens_default, Math.ceil(context_length / 2));
  const room = Math.max(remainingContext(request, context_length), least);
  return most.tokens <= room ? most : { tokens: room, source: "the rest of the model's context" };
}
