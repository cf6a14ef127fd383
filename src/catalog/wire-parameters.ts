import type { EndpointParameter } from '../schemas/endpoint.ts';
import type { Wire } from '../schemas/inner.ts';

/** What a wire has no field for, whatever its provider's row takes on another wire. */
const wireLacks: Partial<Record<Wire, readonly EndpointParameter[]>> = {
  // A row of both wires, as Vertex AI's is, names what either takes.
  'gemini-generate-content': ['parallel_tool_calls', 'verbosity'],
  'anthropic-messages': ['seed', 'frequency_penalty', 'presence_penalty', 'logprobs', 'top_logprobs'],
  // https://platform.openai.com/docs/api-reference/responses/create
  'openai-responses': [
    'stop',
    'seed',
    'frequency_penalty',
    'presence_penalty',
    'logit_bias',
    'prediction',
    'top_k',
    'min_p',
    'repetition_penalty',
  ],
};

/** What is left of an endpoint's parameters over a wire. */
export function takenOver<T extends string>(wire: Wire, parameters: readonly T[]): T[] {
  const lacks: readonly string[] = wireLacks[wire] ?? [];
  return parameters.filter((name) => !lacks.includes(name));
}
