/** The model's vendor: Converse leaves many rules of a request to the model. */
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

/** The family by the provider's name of the model, or by its public name if that does not show it, as an ARN. */
export function familyOf({ upstream_model: upstreamModel, model }: { upstream_model: string; model: string }): Family {
  for (const name of [upstreamModel, model]) {
    const match = FAMILIES.find(([pattern]) => pattern.test(name.toLowerCase()));
    if (match !== undefined) return match[1];
  }
  return 'other';
}
