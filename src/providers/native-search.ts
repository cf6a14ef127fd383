import type { Wire } from '../schemas/inner.ts';
import type { ModelName } from './dialect.ts';
import { modelFacts } from './gemini-generate-content/model-facts.ts';
import type { Quirks } from './quirks.ts';

type NativeSearchKind = NonNullable<Quirks['native_search']>;

/** The wire over which an endpoint searches, by its `native_search` quirk. */
export const searchWires: Readonly<Record<NativeSearchKind, Wire>> = {
  openai: 'openai-responses',
  xai: 'openai-responses',
  anthropic: 'anthropic-messages',
  google: 'gemini-generate-content',
  search_model: 'openai-chat',
  perplexity: 'openai-chat',
};

/**
 * The wire over which an endpoint searches, if other than its usual one: OpenAI's and xAI's models search over the Responses API, at the
 * same address. Undefined if its usual wire searches.
 */
export function otherSearchWire(kind: Quirks['native_search'], wire: Wire): Wire | undefined {
  return (kind === 'openai' || kind === 'xai') && wire === 'openai-chat' ? searchWires[kind] : undefined;
}

/** Whether a Google model accepts search together with functions and JSON: from Gemini 3 on (https://ai.google.dev/gemini-api/docs/tool-combination). */
export function googleCombinesSearch({ upstream_model: upstreamModel, quirks }: ModelName): boolean {
  const { generation = 0 } = modelFacts(upstreamModel, quirks.google_cloud === true);
  return generation >= 3;
}
