import { type ProviderRow, providerRows } from '../providers/table.ts';
import type { BundledCatalog, BundledEndpoint, BundledModel } from './bundled.ts';
import {
  endpointOf,
  inputOf,
  type Listing,
  lastDay,
  type ModelsDev,
  outputOf,
  type PublicSlugs,
  positive,
  unixDay,
} from './listing.ts';
import { identify, knownModels, ownAuthor } from './recognise.ts';

/** The public service's tokenizer groups, by id pattern; the first match applies. */
const tokenizerGroups: [RegExp, string][] = [
  [/^openai\//, 'GPT'],
  [/^anthropic\//, 'Claude'],
  [/\/gemma/, 'Gemma'],
  [/^google\//, 'Gemini'],
  [/^x-ai\//, 'Grok'],
  [/^cohere\//, 'Cohere'],
  [/^amazon\/nova/, 'Nova'],
  [/qwen-?3/, 'Qwen3'],
  [/^qwen\/|qwen/, 'Qwen'],
  [/deepseek/, 'DeepSeek'],
  [/^mistralai\/|mistral|mixtral/, 'Mistral'],
  [/llama-?4/, 'Llama4'],
  [/llama-?3|hermes-4/, 'Llama3'],
  [/llama-?2/, 'Llama2'],
  [/\/yi-/, 'Yi'],
];

function hubOf(listings: Listing[]): string | undefined {
  for (const { weights } of listings) {
    for (const { url } of weights ?? []) {
      const match = /^https:\/\/huggingface\.co\/([^/]+\/[^/?#]+)/.exec(url ?? '');
      if (match) return match[1];
    }
  }
  return undefined;
}

interface Draft {
  id: string;
  /** The maker's own listing, or the public fact, is first. */
  listings: Listing[];
  endpoints: BundledEndpoint[];
}

function modelOf(draft: Draft, fact: Listing | undefined, before: BundledModel | undefined): BundledModel {
  const { id, listings, endpoints } = draft;
  const lead = fact?.release_date === undefined ? listings[0] : { ...listings[0], ...fact };
  const created = before?.created ?? unixDay(lead?.release_date) ?? 0;
  const day = new Date(created * 1000).toISOString().slice(0, 10).replaceAll('-', '');
  const dated = /-(20\d{6}|20\d\d-\d\d-\d\d)$/.test(id) || created === 0;
  const context = positive(listings[0]?.limit?.context) ?? positive(fact?.limit?.context);
  const knowledgeCutoff = lastDay(
    listings.find(({ knowledge }) => knowledge !== undefined)?.knowledge ?? fact?.knowledge ?? before?.knowledge_cutoff,
  );
  const hub = hubOf(listings) ?? before?.hub;
  const input = inputOf(listings[0] ?? { id, name: id });
  return {
    id,
    canonical_slug: before?.canonical_slug ?? (dated ? id : `${id}-${day}`),
    name: (fact?.name ?? lead?.name ?? id).replace(/\s*\(latest\)/i, '').trim(),
    created,
    ...(context === undefined ? {} : { context }),
    ...(knowledgeCutoff === undefined ? {} : { knowledge_cutoff: knowledgeCutoff }),
    input,
    output: outputOf(listings[0] ?? { id, name: id }) ?? ['text'],
    tokenizer: tokenizerGroups.find(([pattern]) => pattern.test(id))?.[1] ?? 'Other',
    ...(hub === undefined ? {} : { hub }),
    endpoints: endpoints.map((endpoint, index) => narrowed(endpoint, listings[index], input)),
  };
}

/** The endpoint with its host's input modalities, if they are fewer than the model's. */
function narrowed(endpoint: BundledEndpoint, listing: Listing | undefined, input: string[]): BundledEndpoint {
  const own = listing === undefined ? input : inputOf(listing);
  return input.every((kind) => own.includes(kind))
    ? endpoint
    : { ...endpoint, input: input.filter((kind) => own.includes(kind)) };
}

/** Whether a price of zero is trusted: from a model's own maker, and from NVIDIA, whose hosted models are for trial. */
function isGratis(row: ProviderRow, id: string): boolean {
  const own = ownAuthor[row.slug];
  return row.slug === 'nvidia' || (own !== undefined && id.startsWith(`${own}/`));
}

/** A catalog, and the listings that are not in it. */
export interface BundleReport {
  catalog: BundledCatalog;
  /** The omitted listings, with the reason. */
  left_out: { provider: string; model: string; reason: string }[];
}

/**
 * Builds the bundled catalog from facts in the shape of models.dev and, for ids that users know, from public slugs or the previous
 * catalog. Deterministic: the same facts give the same bytes.
 */
export function bundleCatalog(source: ModelsDev, slugs: PublicSlugs, previous?: BundledCatalog): BundleReport {
  const known = knownModels(slugs, previous);
  const drafts = new Map<string, Draft>();
  const leftOut: BundleReport['left_out'] = [];
  const waiting: { row: ProviderRow; listing: Listing }[] = [];

  const add = (row: ProviderRow, listing: Listing, onlyKnown: boolean): void => {
    const omit = (reason: string): void => {
      leftOut.push({ provider: row.slug, model: listing.id, reason });
    };
    const identity = identify(known, row, listing);
    if (identity === undefined) {
      omit('its maker is not known');
      return;
    }
    if (onlyKnown && !drafts.has(identity.id)) {
      omit('no price, and no other provider of the model');
      return;
    }
    if (onlyKnown && listing.cost && !isGratis(row, identity.id)) {
      omit('a price of zero at a host that charges');
      return;
    }
    const endpoint = endpointOf(row, listing, identity);
    if (endpoint === undefined) {
      omit('another address or wire than its provider');
      return;
    }
    const draft = drafts.get(identity.id) ?? { id: identity.id, listings: [], endpoints: [] };
    drafts.set(identity.id, draft);
    // Listings are sorted by id, so an alias precedes its dated snapshots and is kept.
    const duplicate = draft.endpoints.find((e) => e.provider === row.slug && e.variant === endpoint.variant);
    if (duplicate !== undefined) {
      omit(`the same endpoint as ${duplicate.model}`);
      return;
    }
    draft.endpoints.push(endpoint);
    draft.listings.push(listing);
  };

  for (const row of providerRows) {
    const listings = row.source === undefined ? [] : Object.values(source[row.source]?.models ?? {});
    for (const listing of listings.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
      const omit = (reason: string): void => {
        leftOut.push({ provider: row.slug, model: listing.id, reason });
      };
      if (listing.status === 'deprecated') omit('deprecated');
      else if (outputOf(listing) === undefined) omit('not a model of an operation that the gateway has');
      else if (!listing.cost || (listing.cost['input'] === 0 && listing.cost['output'] === 0))
        waiting.push({ row, listing });
      else add(row, listing, false);
    }
  }
  // Models without a price need another provider as proof: demonstration endpoints list anything.
  for (const { row, listing } of waiting) add(row, listing, true);

  const before = new Map(previous?.models.map((model) => [model.id, model]));
  const models = [...drafts.values()]
    .map((draft) => modelOf(draft, known.facts.get(draft.id), before.get(draft.id)))
    .toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return { catalog: { format: 1, models }, left_out: leftOut };
}
