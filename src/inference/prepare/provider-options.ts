/** The client's own options for a provider, merged into the body that it gets. */
import { offersTier } from '../../catalog/price-list.ts';
import { GatewayError } from '../../errors.ts';
import type { ChatDialect, Report } from '../../providers/dialect.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { isDeeperThan } from '../../schemas/json-structure.ts';

/** The most nesting levels of a client's provider options. */
const OPTION_LEVELS_MAX = 100;

/** Why a service tier is dropped. */
export const UNPRICED_TIER = 'the endpoint has no price for this tier';

/** The rules of a wire for merging a client's options into its body. */
export interface OptionRules extends Pick<ChatDialect, 'reserved' | 'serviceTier'> {
  worstCase: Pick<ChatDialect['worstCase'], 'unpricedFields'>;
}

/** Merges a client's options into a body, except for fields that the dialect reserves or whose price is not known. */
function merge(
  body: JsonObject,
  options: JsonObject,
  { endpoint }: Candidate,
  { reserved, serviceTier, worstCase: { unpricedFields } }: OptionRules,
  drop: (name: string, reason: string) => void,
): JsonObject {
  const merged = { ...body };
  for (const [name, value] of Object.entries(options)) {
    const inner = [...reserved].filter((field) => field.startsWith(`${name}.`));
    const tier = serviceTier({ [name]: value });
    if (reserved.has(name)) drop(name, 'the gateway sets it');
    else if (unpricedFields.has(name)) drop(name, 'its price is not known');
    else if (tier !== undefined && !offersTier(endpoint, tier)) drop(name, UNPRICED_TIER);
    else if (inner.length === 0) merged[name] = value;
    else if (!isObject(value)) drop(name, 'it is not an object');
    else {
      const object: JsonObject = isObject(merged[name]) ? { ...merged[name] } : {};
      for (const [field, inside] of Object.entries(value)) {
        if (inner.includes(`${name}.${field}`)) drop(`${name}.${field}`, 'the gateway sets it');
        else object[field] = inside;
      }
      merged[name] = object;
    }
  }
  return merged;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The body with the client's `provider.options` of this provider, found by its slug or display name. */
export function withOptions(
  body: JsonObject,
  request: Pick<ChatRequest, 'provider'>,
  candidate: Candidate,
  dialect: OptionRules,
  report: Report[],
): JsonObject {
  const preferences = request.provider?.options;
  if (!preferences) return body;
  if (isDeeperThan(preferences, OPTION_LEVELS_MAX)) {
    throw new GatewayError(400, `provider.options is nested deeper than ${OPTION_LEVELS_MAX} levels`);
  }
  const { slug, name } = candidate.provider;
  const names = [slug, name.toLowerCase()];
  const options = Object.entries(preferences).find(([key]) => names.includes(key.toLowerCase()))?.[1];
  if (!options) return body;
  return merge(body, options as JsonObject, candidate, dialect, (field, reason) => {
    report.push({ kind: 'dropped', field: `provider.options.${slug}.${field}`, reason });
  });
}
