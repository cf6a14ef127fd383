import type { DeclaredEndpoint, DeclaredModel } from '../catalog/catalog.ts';
import { type PriceFault, picoUsd } from '../catalog/price.ts';
import { limits } from '../limits.ts';
import { type Prices, tokenPrices, unitPrices } from '../schemas/prices.ts';
import { didYouMean } from './config-error.ts';
import type { EndpointSection, ModelSection } from './file-schema.ts';
import type { Path, ReadFile } from './read-file.ts';

const MODEL_ID = /^[^/\s]+\/\S+$/;

/** Turns the file's models into declarations: prices exact, references to providers checked. */
export function declaredModels(file: ReadFile, providers: ReadonlySet<string>, bundled: boolean): DeclaredModel[] {
  return Object.entries(file.value.models ?? {}).map(([id, section]) => {
    const path: Path = ['models', id];
    if (!MODEL_ID.test(id)) throw file.wrong(path, 'must be named author/slug');
    if (!bundled && section.endpoints === undefined) {
      throw file.wrong(path, 'must have endpoints, because bundled_catalog is false');
    }
    const { endpoints, ...facts } = section satisfies ModelSection;
    const tags = new Map<string, number>();
    return {
      id,
      ...facts,
      ...(endpoints && {
        endpoints: endpoints.map((endpoint, index) => {
          const declared = declaredEndpoint(file, [...path, 'endpoints', index], endpoint, providers);
          const tag = `${endpoint.provider}/${endpoint.variant ?? ''}`;
          const twin = tags.get(tag);
          if (twin !== undefined) {
            throw file.wrong(
              [...path, 'endpoints', index],
              `has the provider of endpoints[${twin}]; tell them apart by variant, for example "variant: turbo"`,
            );
          }
          tags.set(tag, index);
          return declared;
        }),
      }),
    };
  });
}

function declaredEndpoint(
  file: ReadFile,
  path: Path,
  { pricing, ...facts }: EndpointSection,
  providers: ReadonlySet<string>,
): DeclaredEndpoint {
  if (!providers.has(facts.provider)) {
    throw file.wrong(
      [...path, 'provider'],
      `must be the slug of a provider, not "${facts.provider}"${didYouMean(facts.provider, providers)}`,
    );
  }
  return pricing === undefined ? facts : { ...facts, pricing: declaredPrices(file, [...path, 'pricing'], pricing) };
}

const faults: Record<PriceFault, string> = {
  not_a_price: 'must be a price in USD, 0 or more',
  too_fine: 'must not be finer than 0.000001 USD per million tokens',
  too_high: `must not be above ${limits.unit_price_usd_max} USD for one unit`,
};

function declaredPrices(file: ReadFile, path: Path, pricing: NonNullable<EndpointSection['pricing']>): Prices {
  const prices: Prices = {};
  const read = (name: (typeof tokenPrices | typeof unitPrices)[number], per: 'unit' | 'million') => {
    const value = pricing[name];
    if (value === undefined) return;
    const pico = picoUsd(value, per);
    if (typeof pico === 'string') {
      const fault = pico === 'too_fine' && per === 'unit' ? 'must not have more than 12 decimals' : faults[pico];
      throw file.wrong([...path, name], fault);
    }
    prices[name] = pico;
  };
  for (const name of tokenPrices) read(name, 'million');
  for (const name of unitPrices) read(name, 'unit');
  if (pricing.discount !== undefined) prices.discount = pricing.discount;
  return prices;
}
