import { dialectOf } from '../providers/dialects.ts';
import { otherSearchWire } from '../providers/native-search.ts';
import type { Provider } from '../providers/provider.ts';
import type { Endpoint } from './model.ts';

/**
 * The endpoint for searching, if that is over another wire of its provider than its usual one. Undefined if its usual wire searches, or
 * if the price of searches is unknown.
 */
export function searchEndpoint(endpoint: Endpoint, provider: Provider): Endpoint | undefined {
  const wire = otherSearchWire(endpoint.quirks.native_search, endpoint.dialect ?? provider.dialect);
  if (wire === undefined || endpoint.pricing.web_search === undefined) return undefined;
  const { supported_parameters: known } = endpoint;
  const { modelQuirks, lackingParameters } = dialectOf(wire).facts;
  const lacking: ReadonlySet<string> = new Set(lackingParameters(endpoint));
  const isReasoning = known === undefined || known.includes('reasoning');
  return {
    ...endpoint,
    dialect: wire,
    supported_parameters: known && [...known.filter((name) => !lacking.has(name)), 'web_search_options'],
    quirks: {
      ...endpoint.quirks,
      ...modelQuirks(endpoint.upstream_model),
      ...(isReasoning ? {} : { no_encrypted_reasoning: true }),
    },
  };
}
