import { FLEX_TIERS, type ModelVariant, PRIORITY_TIERS } from './model-variant.ts';

/** What may stand behind a model's name (public service's documentation, "Model variants"). */
const suffixes = ['free', 'extended', 'thinking', 'batch', 'nitro', 'floor', 'exacto', 'online'] as const;
export type Suffix = (typeof suffixes)[number];

/** Those that may be a catalog entry of their own. */
const STATIC: readonly Suffix[] = ['free', 'extended', 'thinking', 'batch'];

function isSuffix(text: string): text is Suffix {
  return (suffixes as readonly string[]).includes(text);
}

/** A name taken apart: what the catalog has, and what is asked for beside it. */
export interface Variant<M> {
  model: M;
  suffixes: readonly Suffix[];
}

/**
 * The model of a name with suffixes, in any order: `author/slug:free:online`. An entry of the catalog that has a suffix in its own
 * name goes before the suffix's meaning. Undefined where there is no such model.
 */
export function resolveVariant<M>(name: string, find: (id: string) => M | undefined): Variant<M> | undefined {
  const whole = find(name);
  if (whole !== undefined) return { model: whole, suffixes: [] };
  let base = name;
  const found: Suffix[] = [];
  for (;;) {
    const colon = base.lastIndexOf(':');
    const suffix = base.slice(colon + 1);
    if (colon <= 0 || !isSuffix(suffix)) return undefined;
    base = base.slice(0, colon);
    if (!found.includes(suffix)) found.push(suffix);
    for (const entry of found.filter((one) => STATIC.includes(one))) {
      const model = find(`${base}:${entry}`);
      if (model !== undefined) return { model, suffixes: found.filter((one) => one !== entry) };
    }
    const model = find(base);
    if (model !== undefined) return { model, suffixes: found };
  }
}

/** What suffixes ask for, where the catalog has no entry for them; `:online` is a plugin of the request, not of the model. */
export function wishOf(given: readonly Suffix[]): ModelVariant | undefined {
  if (given.length === 0) return undefined;
  const wish: ModelVariant = {};
  for (const suffix of given) {
    if (suffix === 'free') wish.free = true;
    else if (suffix === 'extended') wish.extended = true;
    else if (suffix === 'thinking') wish.sends = { reasoning: { enabled: true } };
    else if (suffix === 'exacto') wish.sort ??= 'exacto';
    else if (suffix === 'nitro') {
      wish.sort = 'throughput';
      wish.tiers = PRIORITY_TIERS;
    } else if (suffix === 'floor') {
      wish.sort = 'price';
      wish.tiers = FLEX_TIERS;
    }
  }
  return Object.keys(wish).length === 0 ? undefined : wish;
}
