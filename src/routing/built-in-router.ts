import type { Endpoint, Model } from '../catalog/model.ts';
import { limits } from '../limits.ts';
import type { Provider } from '../providers/provider.ts';
import { supports } from './needs.ts';

/** Names of models that are for one purpose: none of them answers just any question well. */
const SPECIAL =
  /(?:^|[-_/.:])(?:search|research|sonar|guard|safeguard|shield|moderation|ocr|code|coder|codex|codestral|devstral|computer|audio|realtime|transcribe|tts|image|imagen|math|translate|translation|embed|embedding|rerank|base|router|compound|preview)(?:$|[-_/.:\d])/i;

/** Whether the prices of an endpoint are known and within what the router may spend on its own account. */
function isWithinCap({ pricing: { prompt, completion, request = 0 } }: Endpoint): boolean {
  return (
    prompt !== undefined &&
    completion !== undefined &&
    prompt <= limits.built_in_prompt_pico_max &&
    completion <= limits.built_in_completion_pico_max &&
    request === 0
  );
}

const known = new WeakMap<readonly Model[], readonly Model[]>();

/**
 * The models that `gateway/auto` chooses among where nobody has said: those of the providers that are on, newest first, that are for
 * every purpose, call tools, and stay below a price. The sandbox is none of them. Made once for each catalog.
 */
export function builtInModels(
  models: readonly Model[],
  provider: (slug: string) => Provider | undefined,
): readonly Model[] {
  const made = known.get(models);
  if (made !== undefined) return made;
  const found = models.flatMap((model): Model[] => {
    const isPlain = model.output_modalities.length === 1 && model.output_modalities[0] === 'text';
    if (!isPlain || model.is_expired === true || SPECIAL.test(model.id)) return [];
    const endpoints = model.endpoints.filter(
      (endpoint) =>
        supports(endpoint, 'tools') && isWithinCap(endpoint) && provider(endpoint.provider)?.is_sandbox !== true,
    );
    if (endpoints.length === 0) return [];
    return endpoints.length === model.endpoints.length ? [model] : [{ ...model, endpoints }];
  });
  // Of what a local server has, nothing says how well it answers.
  const ordered = [...found.filter((one) => !one.is_discovered), ...found.filter((one) => one.is_discovered)];
  known.set(models, ordered);
  return ordered;
}
