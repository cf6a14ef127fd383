/** Marks objects through which models are called and metered. */
export const METERED: unique symbol = Symbol('metered');

/** Calls models, and counts, bounds and charges every call. Only `createInference` makes one. */
export interface MeteredInference {
  readonly [METERED]: true;
}

/** Tags of operations that run models. */
const INFERENCE_TAGS: ReadonlySet<string> = new Set([
  'Chat',
  'Completions',
  'Messages',
  'Responses',
  'Embeddings',
  'Audio',
]);

/** Whether an operation runs models: a POST under one of these tags. */
export function runsModels(method: string, tags: readonly string[] | undefined): boolean {
  return method === 'POST' && tags?.some((tag) => INFERENCE_TAGS.has(tag)) === true;
}

/** Why a route must not be registered: it runs models and is not metered. Undefined if it may. */
export function unmeteredReason(route: {
  method: string | string[];
  url: string;
  config?: { metered?: MeteredInference };
  schema?: { tags?: readonly string[] };
}): string | undefined {
  const isInference = [route.method].flat().some((method) => runsModels(method, route.schema?.tags));
  if (!isInference || route.config?.metered?.[METERED] === true) return undefined;
  return `${route.method} ${route.url} runs models without metering them`;
}
