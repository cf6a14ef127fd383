import type { Endpoint, Model } from '../catalog/model.ts';
import type { Provider } from '../providers/provider.ts';
import { supports } from './needs.ts';

/** The highest prices of the default models of `gateway/auto`: 3 and 15 USD per million tokens. */
const BUILT_IN_PROMPT_PICO_MAX = 3_000_000;
const BUILT_IN_COMPLETION_PICO_MAX = 15_000_000;

/** Names of models for one purpose, which do not answer general questions well. */
const SPECIAL =
  /(?:^|[-_/.:])(?:search|research|sonar|guard|safeguard|shield|moderation|ocr|code|coder|codex|codestral|devstral|computer|audio|realtime|transcribe|tts|image|imagen|math|translate|translation|embed|embedding|rerank|base|router|compound|preview)(?:$|[-_/.:\d])/i;

/** Whether the prices of an endpoint are known and within the router's price limits. */
function isWithinCap({ pricing: { prompt, completion, request = 0 } }: Endpoint): boolean {
  return (
    prompt !== undefined &&
    completion !== undefined &&
    prompt <= BUILT_IN_PROMPT_PICO_MAX &&
    completion <= BUILT_IN_COMPLETION_PICO_MAX &&
    request === 0
  );
}

const known = new WeakMap<readonly Model[], readonly Model[]>();

/**
 * The default models of `gateway/auto`: general models of enabled providers that call tools and cost less than a limit, newest first.
 * Excludes the sandbox. Computed once per catalog.
 */
export function builtInModels(
  models: readonly Model[],
  provider: (slug: string) => Provider | undefined,
): readonly Model[] {
  const cached = known.get(models);
  if (cached !== undefined) return cached;
  const suitable = models.flatMap((model): Model[] => {
    const isPlain = model.output_modalities.length === 1 && model.output_modalities[0] === 'text';
    if (!isPlain || model.is_expired === true || SPECIAL.test(model.id)) return [];
    const endpoints = model.endpoints.filter(
      (endpoint) =>
        supports(endpoint, 'tools') && isWithinCap(endpoint) && provider(endpoint.provider)?.is_sandbox !== true,
    );
    if (endpoints.length === 0) return [];
    return endpoints.length === model.endpoints.length ? [model] : [{ ...model, endpoints }];
  });
  // The quality of a local server's models is unknown: they are last.
  const ordered = [...suitable.filter((one) => !one.is_discovered), ...suitable.filter((one) => one.is_discovered)];
  known.set(models, ordered);
  return ordered;
}
