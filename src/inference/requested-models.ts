import type { Model } from '../catalog/model.ts';
import { GatewayError } from '../errors.ts';
import type { Provider } from '../providers/provider.ts';
import type { ChatRequest } from '../schemas/inner.ts';

/** The part of the catalog that inference looks at. */
export interface ModelSource {
  find(id: string): Model | undefined;
  models(): readonly Model[];
  provider(slug_or_name: string): Provider | undefined;
}

/** The models that a request names, in order: `model`, then `models`, each once; the default when it names none. Throws a 400. */
export function requestedModels(
  request: ChatRequest,
  catalog: ModelSource,
  default_model: string | undefined,
): { models: Model[]; requested: string } {
  const named: [string, string][] = [];
  if (request.model) named.push(['model', request.model]);
  for (const [index, id] of (request.models ?? []).entries()) named.push([`models[${index}]`, id]);
  if (named.length === 0) {
    if (default_model === undefined) {
      throw new GatewayError(400, 'model is required: no default model is configured');
    }
    named.push(['model', default_model]);
  }
  const models = new Map<string, Model>();
  for (const [field, id] of named) {
    const model = catalog.find(id);
    if (model === undefined) throw new GatewayError(400, `${id} is not a valid model ID`, { metadata: { field } });
    if (!model.output_modalities.some((kind) => kind === 'text' || kind === 'image' || kind === 'audio')) {
      throw new GatewayError(400, `${id} does not answer chat completions`, { metadata: { field } });
    }
    models.set(model.id, model);
  }
  checkBound(request, [...models.values()]);
  return { models: [...models.values()], requested: named[0]?.[1] ?? '' };
}

/** An output bound must be below the context length of a model that is to answer (specification, section Limits). */
function checkBound(request: ChatRequest, models: Model[]): void {
  for (const field of ['max_completion_tokens', 'max_tokens'] as const) {
    const bound = request[field];
    if (typeof bound !== 'number') continue;
    const contexts = models.map((model) => model.context_length ?? Number.POSITIVE_INFINITY);
    const largest = Math.max(...contexts);
    if (bound >= largest) {
      throw new GatewayError(400, `${field} must be less than ${largest}, the model's context length`);
    }
  }
}
