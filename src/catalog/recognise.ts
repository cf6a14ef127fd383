import type { ProviderRow } from '../providers/table.ts';
import { lookupTable } from '../schemas/lookup-table.ts';
import type { BundledCatalog } from './bundled.ts';
import { makerOf, normalise, otherNames, publicAuthor, readListingId, splitVariant } from './identity.ts';
import { type Identity, type Listing, type PublicSlugs, unixDay } from './listing.ts';

/** The public author of the models that a provider makes itself. */
export const ownAuthor: Record<string, string> = lookupTable({
  'google-ai-studio': 'google',
  alibaba: 'qwen',
  mistral: 'mistralai',
  xai: 'x-ai',
  ...Object.fromEntries(
    ['openai', 'anthropic', 'deepseek', 'cohere', 'moonshotai', 'z-ai', 'minimax', 'perplexity'].map((slug) => [
      slug,
      slug,
    ]),
  ),
  ...Object.fromEntries(['inception', 'upstage', 'stepfun', 'morph'].map((slug) => [slug, slug])),
});

/** Names by which a listing may be recognised. Earlier sources take precedence: ids, base models, display names. */
export interface KnownModels {
  byName: Map<string, string>;
  facts: Map<string, Listing>;
  /** The endpoints of the previous catalog, by provider and upstream model. */
  byListing: Map<string, Identity>;
}

/** Collects the names of models that users already know. */
export function knownModels(slugs: PublicSlugs, previous: BundledCatalog | undefined): KnownModels {
  const facts = new Map<string, Listing>();
  const byListing = new Map<string, Identity>();
  for (const { id, name, created, endpoints } of previous?.models ?? []) {
    facts.set(id, { id, name, release_date: new Date(created * 1000).toISOString().slice(0, 10) });
    for (const { provider, model, variant, quantization } of endpoints) {
      byListing.set(`${provider} ${model}`, { id, variant, quantization });
    }
  }
  for (const [id, fact] of Object.entries(slugs)) {
    // Variants, moving aliases and the public service's own routers are not models.
    if (id.includes(':') || id.startsWith('~') || /^(openrouter|switchpoint)\//.test(id)) continue;
    facts.set(id, { ...fact, id });
  }
  const byName = new Map<string, string>();
  const remember = (name: string, id: string) => {
    if (!byName.has(name)) byName.set(name, id);
  };
  for (const id of facts.keys()) remember(normalise(tail(id)), id);
  for (const { id, base_model: baseModel } of facts.values()) if (baseModel) remember(normalise(tail(baseModel)), id);
  const names = Map.groupBy(facts.values(), ({ name }) => normalise(name));
  for (const [name, owners] of names) if (owners.length === 1) remember(name, owners[0]?.id ?? '');
  return { byName, facts, byListing };
}

const tail = (id: string) => id.slice(id.lastIndexOf('/') + 1);

/** Finds or assigns the public id of a listing; undefined if its maker is unknown. */
export function identify(known: KnownModels, row: ProviderRow, listing: Listing): Identity | undefined {
  const before = known.byListing.get(`${row.slug} ${listing.id}`);
  if (before !== undefined) return before;
  const { author: statedAuthor, bare, region } = readListingId(row.slug, listing.id);
  const own = ownAuthor[row.slug];
  const baseAuthor = listing.base_model?.includes('/')
    ? publicAuthor(listing.base_model.split('/')[0] ?? '')
    : undefined;
  const name = normalise(bare);
  const author = statedAuthor ?? own ?? makerOf(name) ?? makerOf(normalise(listing.name)) ?? baseAuthor;
  const find = (candidate: string) => {
    const id = known.byName.get(candidate);
    return id !== undefined && (author === undefined || id.startsWith(`${author}/`)) ? id : undefined;
  };
  const identityOf = (id: string, variant?: string, quantization?: string): Identity => ({
    id,
    variant: region ?? variant,
    // A name may contain the format if the model was recognised by its display name.
    quantization: quantization ?? splitVariant(name)?.quantization,
  });

  const other = otherNames[name];
  if (other !== undefined && known.facts.has(other) && (author === undefined || other.startsWith(`${author}/`)))
    return identityOf(other);

  const latest = name.endsWith(' latest') ? find(name.slice(0, -7)) : undefined;
  if (latest !== undefined && sameMonth(known.facts.get(latest)?.release_date, listing.release_date))
    return identityOf(latest);

  const display = normalise(listing.name);
  for (const candidate of [name, normalise(bare.replace(/:.*$/, '')), display]) {
    const id = find(candidate);
    if (id === undefined) continue;
    // `Mistral Large (latest)` is updated, while the model known as Mistral Large is not.
    const moved = candidate === display && candidate !== name && isLatest(listing);
    if (!moved || sameMonth(known.facts.get(id)?.release_date, listing.release_date)) return identityOf(id);
  }
  // A maker's own faster edition has its own price and name; a host's is a variant of the model.
  let variant: string | undefined;
  let quantization: string | undefined;
  let shorter = own === undefined ? splitVariant(name) : undefined;
  while (shorter !== undefined) {
    variant = variant === undefined || shorter.quantization === undefined ? shorter.variant : variant;
    quantization ??= shorter.quantization;
    const id = find(shorter.name);
    if (id !== undefined) return identityOf(id, variant, quantization);
    shorter = splitVariant(shorter.name);
  }
  const base = listing.base_model === undefined ? undefined : normalise(tail(listing.base_model));
  if (base !== undefined && addsNothing(name, base, own === undefined)) {
    const id = find(base);
    if (id !== undefined) return identityOf(id, variant, quantization);
  }
  if (author === undefined) return undefined;
  const slug = bare.toLowerCase().replace(/[^a-z0-9._-]+/g, '-');
  const id = `${author}/${slug.replace(/^(meta-(?=llama)|cohere-(?=embed))/, '')}`;
  for (const candidate of [name, ...(own === undefined || isLatest(listing) ? [] : [display])]) {
    if (!known.byName.has(candidate)) known.byName.set(candidate, id);
  }
  return identityOf(id);
}

/** Whether a listing's name has no words beyond its stated base model's; some stated base models are wrong. */
function addsNothing(name: string, base: string, hosted: boolean): boolean {
  const words = new Set(base.split(' '));
  let rest = name;
  for (let split = hosted ? splitVariant(rest) : undefined; split !== undefined; split = splitVariant(rest))
    rest = split.name;
  return rest.split(' ').every((word) => words.has(word));
}

const isLatest = ({ name }: Listing) => /\(latest\)/i.test(name);

function sameMonth(one: string | undefined, other: string | undefined): boolean {
  const days = (text: string | undefined) => (unixDay(text) ?? Number.NaN) / 86_400;
  return Math.abs(days(one) - days(other)) < 45;
}
