import type { Static } from 'typebox';
import { GatewayError, invalidField } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { CompletionBody } from '../../schemas/completions.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import { chatRequest } from '../chat/parse-request.ts';

export type CompletionRequest = Static<typeof CompletionBody>;

/** Fields of this API only; `logprobs` has another type in chat. */
const OWN = new Set(['prompt', 'echo', 'logprobs', 'best_of', 'suffix']);

/** Chat fields whose results a text choice cannot contain. */
const CHAT_FIELDS = [
  'messages',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'functions',
  'function_call',
  'top_logprobs',
];

/** The prompts of a request. Throws a `GatewayError` 400 for a request that models cannot answer as text. */
function promptsOf({ prompt, suffix, best_of, echo, logprobs }: CompletionRequest): string[] {
  const prompts = typeof prompt === 'string' ? [prompt] : prompt;
  if (prompts.some((prompt) => typeof prompt !== 'string')) {
    throw new GatewayError(
      400,
      'prompt: prompts as tokens are not supported, because each model has its own; send text',
    );
  }
  if (prompts.length > limits.completion_prompts_max) {
    throw new GatewayError(400, `prompt: at most ${limits.completion_prompts_max} prompts per request`);
  }
  if (suffix) throw new GatewayError(400, 'suffix is not supported: models are asked to continue, not to insert');
  if (best_of != null && best_of > 1) throw invalidField('best_of', 'must be 1: each prompt is answered once');
  if (echo && logprobs != null) {
    throw new GatewayError(400, 'logprobs cannot be combined with echo: providers do not report those of the prompt');
  }
  return prompts as string[];
}

/** The chat request for each prompt, in order. Throws a `GatewayError` 400 that names the field. */
export function completionRequests(body: CompletionRequest): ChatRequest[] {
  const foreign = CHAT_FIELDS.find((field) => (body as Record<string, unknown>)[field] != null);
  if (foreign !== undefined) throw new GatewayError(400, `${foreign} belongs to POST /chat/completions`);
  const prompts = promptsOf(body);
  const shared = Object.fromEntries(Object.entries(body).filter(([field]) => !OWN.has(field)));
  const { logprobs } = body;
  const wanted = logprobs == null ? {} : { logprobs: true, ...(logprobs > 0 ? { top_logprobs: logprobs } : {}) };
  return prompts.map((prompt) => chatRequest({ ...shared, ...wanted, prompt }));
}
