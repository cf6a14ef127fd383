import type { Quirks } from '../providers/provider.ts';
import { type ProviderRow, providerRows } from '../providers/table.ts';
import type { Ability, BundledCatalog, BundledEndpoint, BundledModel } from './bundled.ts';
import { makerOf, normalise, publicAuthor, readListingId, splitVariant } from './identity.ts';
import type { Prices, PriceTier } from './model.ts';
import { nearestPicoUsd } from './price.ts';

type Cost = Record<string, unknown> & { tiers?: ({ tier?: { size?: number } } & Record<string, unknown>)[] };

/** One model of one provider in the shape of https://models.dev/api.json, as far as it is read here. */
interface Listing {
  id: string;
  name: string;
  release_date?: string;
  knowledge?: string;
  base_model?: string;
  family?: string;
  status?: string;
  reasoning?: boolean;
  reasoning_options?: { type?: string; values?: (string | null)[] }[];
  temperature?: boolean;
  tool_call?: boolean;
  structured_output?: boolean;
  interleaved?: true | { field?: string };
  weights?: { label?: string; url?: string }[];
  modalities?: { input?: string[]; output?: string[] };
  limit?: { context?: number; input?: number; output?: number };
  cost?: Cost;
  provider?: { npm?: string; shape?: string };
}
export type ModelsDev = Record<string, { models: Record<string, Listing> }>;

/** Public `author/slug` ids with what is known of them; `base_model` is the provider-independent name. */
export type PublicSlugs = Record<string, Omit<Listing, 'id'>>;

/** What the gateway's maker of models calls itself, for providers that serve their own. */
const ownAuthor: Record<string, string> = {
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
};

/** Names that a listing may be recognised by. Earlier sources win: ids over base models over display names. */
interface KnownModels {
  byName: Map<string, string>;
  facts: Map<string, Listing>;
}

function knownModels(slugs: PublicSlugs, previous: BundledCatalog | undefined): KnownModels {
  const facts = new Map<string, Listing>();
  for (const model of previous?.models ?? []) facts.set(model.id, { id: model.id, name: model.name });
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
  for (const { id, base_model } of facts.values()) if (base_model) remember(normalise(tail(base_model)), id);
  const names = Map.groupBy(facts.values(), ({ name }) => normalise(name));
  for (const [name, owners] of names) if (owners.length === 1) remember(name, owners[0]?.id ?? '');
  return { byName, facts };
}

const tail = (id: string) => id.slice(id.lastIndexOf('/') + 1);

interface Identity {
  id: string;
  variant: string | undefined;
  quantization: string | undefined;
}

/** Finds or gives the public id of a listing; undefined when nobody can tell who made it. */
function identify(known: KnownModels, row: ProviderRow, listing: Listing): Identity | undefined {
  const { author: stated, bare, region } = readListingId(row.slug, listing.id);
  const own = ownAuthor[row.slug];
  const baseAuthor = listing.base_model?.includes('/')
    ? publicAuthor(listing.base_model.split('/')[0] ?? '')
    : undefined;
  const name = normalise(bare);
  const author = stated ?? own ?? makerOf(name) ?? makerOf(normalise(listing.name)) ?? baseAuthor;
  const find = (candidate: string) => {
    const id = known.byName.get(candidate);
    return id !== undefined && (author === undefined || id.startsWith(`${author}/`)) ? id : undefined;
  };
  const done = (id: string, variant?: string, quantization?: string): Identity => ({
    id,
    variant: region ?? variant,
    quantization,
  });

  const latest = name.endsWith(' latest') ? find(name.slice(0, -7)) : undefined;
  if (latest !== undefined && sameMonth(known.facts.get(latest)?.release_date, listing.release_date))
    return done(latest);

  const display = normalise(listing.name);
  for (const candidate of [name, normalise(bare.replace(/:.*$/, '')), display]) {
    const id = find(candidate);
    if (id === undefined) continue;
    // `Mistral Large (latest)` moves on, while the model known as Mistral Large stays what it was.
    const moved = candidate === display && candidate !== name && isLatest(listing);
    if (!moved || sameMonth(known.facts.get(id)?.release_date, listing.release_date)) return done(id);
  }
  // A maker's own faster edition has a price and a name of its own; a host's is a variant of the model.
  let variant: string | undefined;
  let quantization: string | undefined;
  let shorter = own === undefined ? splitVariant(name) : undefined;
  while (shorter !== undefined) {
    variant = variant === undefined || shorter.quantization === undefined ? shorter.variant : variant;
    quantization ??= shorter.quantization;
    const id = find(shorter.name);
    if (id !== undefined) return done(id, variant, quantization);
    shorter = splitVariant(shorter.name);
  }
  const base = listing.base_model === undefined ? undefined : normalise(tail(listing.base_model));
  if (base !== undefined && addsNothing(name, base, own === undefined)) {
    const id = find(base);
    if (id !== undefined) return done(id, variant, quantization);
  }
  if (author === undefined) return undefined;
  const slug = bare.toLowerCase().replace(/[^a-z0-9._-]+/g, '-');
  const id = `${author}/${slug.replace(/^(meta-(?=llama)|cohere-(?=embed))/, '')}`;
  for (const candidate of [name, ...(own === undefined || isLatest(listing) ? [] : [display])]) {
    if (!known.byName.has(candidate)) known.byName.set(candidate, id);
  }
  return done(id);
}

/** Whether a listing's own name says nothing that its stated base model does not; some stated base models are wrong. */
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

/** Unix seconds of `2025-07-25` or `2025-07`. */
function unixDay(text: string | undefined): number | undefined {
  const match = /^(\d{4})-(\d\d)(?:-(\d\d))?$/.exec(text ?? '');
  return match ? Date.UTC(Number(match[1]), Number(match[2]) - 1, Number(match[3] ?? 1)) / 1000 : undefined;
}

/** A day for `2024-09-30`, `2024-09` or `2024`: the last one that the text may mean. */
function lastDay(text: string | undefined): string | undefined {
  const match = /^(\d{4})(?:-(\d\d))?(?:-(\d\d))?$/.exec(text ?? '');
  if (!match) return undefined;
  const [, year, month = '12', day] = match;
  return `${year}-${month}-${day ?? String(new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()).padStart(2, '0')}`;
}

function pricesOf(cost: Cost, row: ProviderRow, claude: boolean): Prices | undefined {
  const perMillion = (...names: string[]): number | undefined => {
    const value = names.map((name) => cost[name]).find((found) => found !== undefined);
    return typeof value === 'number' || typeof value === 'string' ? nearestPicoUsd(value, 'million') : undefined;
  };
  const prompt = perMillion('input');
  const completion = perMillion('output');
  if (prompt === undefined || completion === undefined) return undefined;
  const prices: Prices = { prompt, completion };
  const set = (name: Exclude<keyof Prices, 'discount'>, value: number | undefined) => {
    // A zero beside a real prompt price stands for "none" in these facts; absent means the prompt's price.
    if (value !== undefined && (value > 0 || prompt === 0)) prices[name] = value;
  };
  set('input_cache_read', perMillion('cache_read', 'cached_input', 'cache_input'));
  set('input_cache_write', perMillion('cache_write', 'cached_write'));
  // Twice the input price (https://docs.claude.com/en/docs/build-with-claude/prompt-caching).
  if (claude && prices.input_cache_write !== undefined) prices.input_cache_write_1h = prompt * 2;
  set('audio', perMillion('input_audio'));
  set('audio_output', perMillion('output_audio'));
  set('internal_reasoning', perMillion('reasoning'));
  // Stated per thousand searches (https://docs.perplexity.ai/getting-started/pricing).
  if (row.slug === 'perplexity' && typeof cost['request'] === 'number') {
    const thousand = nearestPicoUsd(cost['request'], 'unit');
    if (thousand !== undefined) prices.web_search = Math.round(thousand / 1000);
  }
  return prices;
}

function tiersOf(cost: Cost, row: ProviderRow, claude: boolean): PriceTier[] | undefined {
  const tiers = (cost.tiers ?? []).flatMap(({ tier, ...rest }) => {
    const price = pricesOf(rest, row, claude);
    return price && tier?.size ? [{ prompt_tokens_over: tier.size, price }] : [];
  });
  return tiers.length === 0 ? undefined : tiers;
}

/** OpenAI serves these by its Responses API only (https://platform.openai.com/docs/models). */
const responsesOnly = /^(gpt-[\d.]+-(pro|codex.*)|o\d-pro|.*deep-research|codex-.*)$/;

/** The wire of a listing where it is not its provider's; null for one that the provider's address does not serve. */
function dialectOf(row: ProviderRow, listing: Listing): BundledEndpoint['dialect'] | null {
  if ((row.slug === 'openai' || row.slug === 'azure') && responsesOnly.test(listing.id)) return 'openai-responses';
  const { npm, shape } = listing.provider ?? {};
  if (npm === undefined) return undefined;
  return npm === '@ai-sdk/openai-compatible' && row.dialect === 'openai-chat' && shape !== 'responses'
    ? undefined
    : null;
}

const knownEfforts = new Set(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']);

/** The effort levels that a model takes; undefined where it is not told, or told in words of its own. */
function effortsOf(listing: Listing): string[] | undefined {
  const values = listing.reasoning_options?.find(({ type }) => type === 'effort')?.values ?? [];
  const efforts = values.filter((value) => value !== null && knownEfforts.has(value)) as string[];
  return efforts.length === values.length && efforts.some((effort) => effort !== 'none') ? efforts : undefined;
}

function abilities(row: ProviderRow, listing: Listing): Ability[] {
  const can: Ability[] = [];
  if (listing.tool_call) can.push('tools');
  if (listing.structured_output !== false) can.push('structured');
  if (listing.temperature !== false) can.push('sampling');
  if (listing.reasoning) {
    can.push('reasoning');
    const options = listing.reasoning_options;
    const told = options && (effortsOf(listing) !== undefined || options.some(({ type }) => type === 'budget_tokens'));
    // xAI's models without levels refuse the parameter (https://docs.x.ai/docs/guides/reasoning).
    if (told ?? row.slug !== 'xai') can.push('effort');
  }
  return can;
}

/** What the model puts out, in public names; undefined for models of other operations than this gateway's. */
function outputOf(listing: Listing): string[] | undefined {
  const output = listing.modalities?.output ?? ['text'];
  const name = `${listing.family ?? ''} ${listing.id}`.toLowerCase();
  // Speech recognition is sold by the minute, and these facts have prices of tokens only.
  if (/rerank|realtime|livetranslate|prompt-guard|ocr|gpt-image|turbo-instruct|whisper|-asr|transcribe/.test(name)) {
    return undefined;
  }
  if (/embed|bge-/.test(name)) return ['embeddings'];
  if (!output.includes('text')) return undefined;
  return ['text', 'image', 'audio'].filter((modality) => output.includes(modality));
}

function inputOf(listing: Listing): string[] {
  const input = (listing.modalities?.input ?? ['text']).map((modality) => (modality === 'pdf' ? 'file' : modality));
  const known = ['text', 'image', 'file', 'audio', 'video'].filter((modality) => input.includes(modality));
  return known.length === 0 ? ['text'] : known;
}

const positive = (value: number | undefined) => (value !== undefined && value > 0 ? value : undefined);

function endpointOf(row: ProviderRow, listing: Listing, identity: Identity): BundledEndpoint | undefined {
  const dialect = dialectOf(row, listing);
  if (dialect === null) return undefined;
  const claude = identity.id.startsWith('anthropic/');
  const price = listing.cost === undefined ? undefined : pricesOf(listing.cost, row, claude);
  const tiers = listing.cost === undefined ? undefined : tiersOf(listing.cost, row, claude);
  const field = typeof listing.interleaved === 'object' ? listing.interleaved.field : undefined;
  const replays = row.dialect === 'openai-chat' && (field === 'reasoning_content' || field === 'reasoning_details');
  const efforts = effortsOf(listing);
  const quirks: Quirks = {
    ...(replays ? { replay_reasoning: field } : {}),
    ...(row.dialect === 'openai-chat' && efforts !== undefined ? { reasoning_efforts: efforts } : {}),
    // https://console.groq.com/docs/reasoning: GPT-OSS refuses the field.
    ...(row.slug === 'groq' && /qwen/.test(listing.id) ? { extra_body: { reasoning_format: 'parsed' } } : {}),
  };
  const { variant, quantization } = identity;
  const context = positive(listing.limit?.context);
  const prompt_max = positive(listing.limit?.input);
  const completion_max = positive(listing.limit?.output);
  return {
    provider: row.slug,
    ...(variant === undefined ? {} : { variant }),
    model: listing.id,
    ...(dialect === undefined ? {} : { dialect }),
    ...(context === undefined ? {} : { context }),
    ...(prompt_max === undefined ? {} : { prompt_max }),
    ...(completion_max === undefined ? {} : { completion_max }),
    can: abilities(row, listing),
    ...(quantization === undefined ? {} : { quantization }),
    ...(price === undefined ? {} : { price }),
    ...(tiers === undefined ? {} : { tiers }),
    ...(Object.keys(quirks).length === 0 ? {} : { quirks }),
  };
}

/** Tokenizer groups (api-facts 2.1) by the normalised name; the first that fits. */
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
  /** The maker's own listing or the public fact first. */
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
  const knowledge_cutoff = lastDay(
    listings.find(({ knowledge }) => knowledge !== undefined)?.knowledge ?? fact?.knowledge,
  );
  const hub = hubOf(listings);
  return {
    id,
    canonical_slug: before?.canonical_slug ?? (dated ? id : `${id}-${day}`),
    name: (fact?.name ?? lead?.name ?? id).replace(/\s*\(latest\)/i, '').trim(),
    created,
    ...(context === undefined ? {} : { context }),
    ...(knowledge_cutoff === undefined ? {} : { knowledge_cutoff }),
    input: inputOf(listings[0] ?? { id, name: id }),
    output: outputOf(listings[0] ?? { id, name: id }) ?? ['text'],
    tokenizer: tokenizerGroups.find(([pattern]) => pattern.test(id))?.[1] ?? 'Other',
    ...(hub === undefined ? {} : { hub }),
    endpoints,
  };
}

/** A price of zero is believed of a model's own maker, and of NVIDIA, whose hosted models are for trial. */
function isGratis(row: ProviderRow, id: string): boolean {
  const own = ownAuthor[row.slug];
  return row.slug === 'nvidia' || (own !== undefined && id.startsWith(`${own}/`));
}

/** Of two listings that mean the same endpoint, the one with the plainer upstream name stays. */
function plainer(one: BundledEndpoint, other: BundledEndpoint): BundledEndpoint {
  const dated = (model: string) => (/20\d{6}|20\d\d-\d\d-\d\d/.test(model) ? 1 : 0);
  const order =
    dated(one.model) - dated(other.model) ||
    one.model.length - other.model.length ||
    (one.model < other.model ? -1 : 1);
  return order <= 0 ? one : other;
}

export interface BundleReport {
  catalog: BundledCatalog;
  /** Listings left out, with the reason. */
  left_out: { provider: string; model: string; reason: string }[];
}

/**
 * Makes the bundled catalog from facts in the shape of models.dev and, for ids that users know, from public slugs or
 * the catalog that was there before. The same facts give the same bytes.
 */
export function bundleCatalog(source: ModelsDev, slugs: PublicSlugs, previous?: BundledCatalog): BundleReport {
  const known = knownModels(slugs, previous);
  const drafts = new Map<string, Draft>();
  const left_out: BundleReport['left_out'] = [];
  const waiting: { row: ProviderRow; listing: Listing }[] = [];

  const add = (row: ProviderRow, listing: Listing, onlyKnown: boolean): void => {
    const leave = (reason: string): void => {
      left_out.push({ provider: row.slug, model: listing.id, reason });
    };
    const identity = identify(known, row, listing);
    if (identity === undefined) {
      leave('its maker is not known');
      return;
    }
    if (onlyKnown && !drafts.has(identity.id)) {
      leave('no price, and no other provider of the model');
      return;
    }
    if (onlyKnown && listing.cost && !isGratis(row, identity.id)) {
      leave('a price of zero at a host that charges');
      return;
    }
    const endpoint = endpointOf(row, listing, identity);
    if (endpoint === undefined) {
      leave('another address or wire than its provider');
      return;
    }
    const draft = drafts.get(identity.id) ?? { id: identity.id, listings: [], endpoints: [] };
    drafts.set(identity.id, draft);
    const twin = draft.endpoints.findIndex((e) => e.provider === row.slug && e.variant === endpoint.variant);
    if (twin === -1) {
      draft.endpoints.push(endpoint);
      draft.listings.push(listing);
      return;
    }
    const stays = plainer(draft.endpoints[twin] ?? endpoint, endpoint);
    left_out.push({
      provider: row.slug,
      model: stays === endpoint ? (draft.endpoints[twin]?.model ?? '') : listing.id,
      reason: `the same endpoint as ${stays.model}`,
    });
    draft.endpoints[twin] = stays;
  };

  for (const row of providerRows) {
    const listings = row.source === undefined ? [] : Object.values(source[row.source]?.models ?? {});
    for (const listing of listings.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
      const leave = (reason: string): void => {
        left_out.push({ provider: row.slug, model: listing.id, reason });
      };
      if (listing.status === 'deprecated') leave('deprecated');
      else if (outputOf(listing) === undefined) leave('not a model of an operation that the gateway has');
      else if (!listing.cost || (listing.cost['input'] === 0 && listing.cost['output'] === 0))
        waiting.push({ row, listing });
      else add(row, listing, false);
    }
  }
  // A price of zero or none proves nothing on its own: demonstration endpoints list whatever there is.
  for (const { row, listing } of waiting) add(row, listing, true);

  const before = new Map(previous?.models.map((model) => [model.id, model]));
  const models = [...drafts.values()]
    .map((draft) => modelOf(draft, known.facts.get(draft.id), before.get(draft.id)))
    .toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return { catalog: { format: 1, models }, left_out };
}
