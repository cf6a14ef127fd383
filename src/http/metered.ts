/** What an operation of inference answers through. */
export const METERED: unique symbol = Symbol('metered');

/** A way to a model that counts, bounds and charges every call. Only `createInference` makes one. */
export interface Metered {
  readonly [METERED]: true;
}

/** Tags of operations that run models. They grow with the operations of the public API. */
const INFERENCE_TAGS: ReadonlySet<string> = new Set([
  'Chat',
  'Completions',
  'Messages',
  'Responses',
  'Embeddings',
  'Audio',
]);

/** Whether an operation runs models: posts under their tags do. */
export function runsModels(method: string, tags: readonly string[] | undefined): boolean {
  return method === 'POST' && tags?.some((tag) => INFERENCE_TAGS.has(tag)) === true;
}

/** Why a route must not be registered: it runs models and is not known to meter them. */
export function unmeteredReason(route: {
  method: string | string[];
  url: string;
  config?: { metered?: Metered };
  schema?: { tags?: readonly string[] };
}): string | undefined {
  const runs_models = [route.method].flat().some((method) => runsModels(method, route.schema?.tags));
  if (!runs_models || route.config?.metered?.[METERED] === true) return undefined;
  return `${route.method} ${route.url} runs models without metering them`;
}
