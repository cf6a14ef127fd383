import type { BundledCatalog } from '../catalog/bundled.ts';
import { buildCatalog, type DeclaredModel } from '../catalog/catalog.ts';
import { usdPerMillion } from '../catalog/price.ts';
import type { Provider } from '../providers/provider.ts';
import { providerRow } from '../providers/table.ts';
import { didYouMean } from './config-error.ts';
import type { ProviderSection } from './file-schema.ts';

type ProvidersSection = Readonly<Record<string, Pick<ProviderSection, 'variants'>>>;

/** Warnings for variants of a provider that no bundled model has: they select nothing. */
export function variantWarnings(providers: ProvidersSection, bundled: BundledCatalog): string[] {
  return Object.entries(providers).flatMap(([slug, section]) => {
    if (section.variants === undefined) return [];
    const known = new Set(providerRow.get(slug)?.variants_by?.variants.flatMap(([, variants]) => variants));
    for (const { endpoints } of bundled.models) {
      for (const { provider, variant } of endpoints) if (provider === slug && variant !== undefined) known.add(variant);
    }
    return section.variants
      .filter((variant) => !known.has(variant))
      .map((variant) => `Provider "${slug}": no bundled model has a variant "${variant}"${didYouMean(variant, known)}`);
  });
}

/** Warnings for declared models without endpoints, endpoints without a price, and canonical slugs that two models share. */
export function modelWarnings(
  declared: readonly DeclaredModel[],
  providers: readonly Provider[],
  { bundled, allow_unpriced }: { bundled: BundledCatalog; allow_unpriced: boolean },
): string[] {
  const known = new Set(bundled.models.map(({ id }) => id));
  const catalog = buildCatalog({
    bundled,
    config: { bundled_catalog: true, models: declared },
    providers,
    created_default: 0,
  });
  const shared = slugWarnings(declared, [...bundled.models, ...declared]);
  const unserved = declared.flatMap(({ id, endpoints }) => {
    if (endpoints === undefined && !known.has(id)) {
      return [`Model ${id} has no endpoints, and no bundled model has this name${didYouMean(id, known)}`];
    }
    if (allow_unpriced || endpoints === undefined) return [];
    const own = new Set(endpoints.map(({ provider }) => provider));
    return (catalog.find(id)?.endpoints ?? []).flatMap(({ provider, tag, pricing }) => {
      const lacking = (['prompt', 'completion'] as const).filter((name) => pricing[name] === undefined);
      return lacking.length === 0 || !own.has(provider)
        ? []
        : [`Model ${id} at ${tag} is refused: its pricing has no ${lacking.join(' and no ')} (use 0 if it is free)`];
    });
  });
  return [...shared, ...unserved];
}

/** The usual range of token prices, in pico-USD for one token: 0.001 to 10,000 USD for a million tokens. */
const TOKEN_PICO_USUAL = { min: 1_000, max: 10_000_000_000 };

/** Warnings for token prices that are probably in the wrong unit: per token instead of per million tokens, or the reverse. */
export function priceWarnings(declared: readonly DeclaredModel[]): string[] {
  return declared.flatMap(({ id, endpoints = [] }) =>
    endpoints.flatMap(({ provider, pricing = {} }) =>
      (['prompt', 'completion'] as const).flatMap((name) => {
        const pico = pricing[name] ?? 0;
        if (pico === 0 || (pico >= TOKEN_PICO_USUAL.min && pico <= TOKEN_PICO_USUAL.max)) return [];
        const advice =
          pico < TOKEN_PICO_USUAL.min
            ? 'If it is the price of one token, add "per: token" to its pricing'
            : 'If it is the price of a million tokens, remove "per: token" from its pricing';
        return [
          `Model ${id} at ${provider}: the ${name} price is $${usdPerMillion(pico)} per million tokens. ${advice}`,
        ];
      }),
    ),
  );
}

/** Warnings for canonical slugs that another model has too. A static variant (`author/slug:free`) may share its model's. */
function slugWarnings(
  declared: readonly DeclaredModel[],
  models: readonly { id: string; canonical_slug?: string }[],
): string[] {
  const owners = new Map<string, string>();
  for (const { id, canonical_slug } of models) if (canonical_slug !== undefined) owners.set(canonical_slug, id);
  for (const { id } of models) owners.set(id, id);
  return declared.flatMap(({ id, canonical_slug }) => {
    const owner = canonical_slug === undefined ? undefined : owners.get(canonical_slug);
    if (owner === undefined || owner === id || id.startsWith(`${canonical_slug}:`)) return [];
    return [`Model ${id} has the canonical_slug of ${owner}: guardrails and links cannot distinguish them`];
  });
}
