/** Which maker's rules a model follows: Converse leaves much of a request to the model behind it. */
export type Family =
  | 'claude'
  | 'nova'
  | 'nova-2'
  | 'gpt-oss'
  | 'openai'
  | 'mistral'
  | 'llama'
  | 'qwen'
  | 'deepseek'
  | 'other';

const FAMILIES: readonly [RegExp, Family][] = [
  [/claude/, 'claude'],
  [/nova-2/, 'nova-2'],
  [/nova/, 'nova'],
  [/gpt-oss/, 'gpt-oss'],
  [/openai/, 'openai'],
  [/mi[sx]tral|pixtral|ministral|magistral|voxtral|devstral/, 'mistral'],
  [/llama/, 'llama'],
  [/qwen/, 'qwen'],
  [/deepseek/, 'deepseek'],
];

/** Nova of either generation. */
export function isNova(family: Family): boolean {
  return family === 'nova' || family === 'nova-2';
}

/** The family by the model's name at the provider; where that tells nothing, as an ARN does, by its public name. */
export function familyOf({ upstream_model: upstreamModel, model }: { upstream_model: string; model: string }): Family {
  for (const name of [upstreamModel, model]) {
    const found = FAMILIES.find(([pattern]) => pattern.test(name.toLowerCase()));
    if (found !== undefined) return found[1];
  }
  return 'other';
}
