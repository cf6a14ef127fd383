import { limits } from '../limits.ts';
import { matchesPattern } from '../schemas/model-pattern.ts';
import type { FreeRates, RateAmounts, RateRules } from '../schemas/rate-limit.ts';
import { didYouMean } from './config-error.ts';
import type { RateAmountsSection } from './file-schema.ts';
import type { ReadFile } from './read-file.ts';
import { rateLimits } from './settings/calls.ts';
import { filled } from './settings/declare.ts';

function amount(value: number | 'unlimited' | undefined, otherwise: number | undefined): number | undefined {
  if (value === 'unlimited') return undefined;
  return value ?? otherwise;
}

const UNBOUNDED: RateAmounts = { requests_per_minute: undefined, tokens_per_minute: undefined };

/** The limits of a section. Limits that it does not set are those of `otherwise`. */
function amountsOf(section: RateAmountsSection | undefined, otherwise: RateAmounts): RateAmounts {
  return {
    requests_per_minute: amount(section?.requests_per_minute, otherwise.requests_per_minute),
    tokens_per_minute: amount(section?.tokens_per_minute, otherwise.tokens_per_minute),
  };
}

function amountsBy(
  file: ReadFile | undefined,
  name: 'keys' | 'models',
  otherwise: RateAmounts,
): ReadonlyMap<string, RateAmounts> {
  const sections = Object.entries(file?.value.rate_limits?.[name] ?? {});
  if (file && sections.length > limits.rate_settings_max) {
    throw file.wrong(['rate_limits', name], `must have at most ${limits.rate_settings_max} entries`);
  }
  return new Map(sections.map(([key, section]) => [key, amountsOf(section, otherwise)]));
}

/** Warnings for settings of `rate_limits.models` that match no model. */
export function rateWarnings({ models }: RateRules, known: ReadonlySet<string>): string[] {
  return [...models.keys()]
    .filter((pattern) => !known.has(pattern) && !isMatched(pattern, known))
    .map(
      (pattern) =>
        `rate_limits.models names ${pattern}, which is not a model of the catalog${didYouMean(pattern, [...known])}`,
    );
}

function isMatched(pattern: string, known: ReadonlySet<string>): boolean {
  if (pattern.startsWith('sandbox/')) return true;
  return pattern.includes('*') && [...known].some((id) => matchesPattern(id, pattern));
}

const FREE: FreeRates = {
  requests_per_minute: limits.free_requests_per_minute,
  requests_per_day: limits.free_requests_per_day,
  requests_per_day_funded: limits.free_requests_per_day_funded,
  funded_usd: limits.free_funded_usd,
};

/** Reads the section `rate_limits`: without it, only free models are limited, as the public service limits them. */
export function readRateRules(file: ReadFile | undefined): RateRules {
  const section = file?.value.rate_limits;
  const perKey = amountsOf(section?.per_key, UNBOUNDED);
  const perModel = amountsOf(section?.per_model, UNBOUNDED);
  const free = section?.free_models;
  return {
    per_key: perKey,
    per_model: perModel,
    per_key_and_model: amountsOf(section?.per_key_and_model, UNBOUNDED),
    keys: amountsBy(file, 'keys', perKey),
    models: amountsBy(file, 'models', perModel),
    free_models: free === 'off' ? undefined : { ...FREE, ...free },
    uncounted: filled(rateLimits, section).uncounted,
  };
}
