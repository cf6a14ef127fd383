import { FLEX_TIERS, type ModelVariant, PRIORITY_TIERS } from './model-variant.ts';

/** The suffixes of a model's name (public service's documentation, "Model variants"). */
const suffixes = ['free', 'extended', 'thinking', 'batch', 'nitro', 'floor', 'exacto', 'online'] as const;
export type Suffix = (typeof suffixes)[number];

/** Suffixes that may be part of a catalog entry's name. */
const STATIC: readonly Suffix[] = ['free', 'extended', 'thinking', 'batch'];

function isSuffix(text: string): text is Suffix {
  return (suffixes as readonly string[]).includes(text);
}

/** A parsed name: the catalog's model, and the suffixes. */
export interface Variant<M> {
  model: M;
  suffixes: readonly Suffix[];
}

/**
 * The model of a name with suffixes in any order: `author/slug:free:online`. A catalog entry with a suffix in its own name takes
 * precedence over the suffix's meaning. Undefined if there is no such model.
 */
export function resolveVariant<M>(name: string, find: (id: string) => M | undefined): Variant<M> | undefined {
  const whole = find(name);
  if (whole !== undefined) return { model: whole, suffixes: [] };
  let base = name;
  const parsed: Suffix[] = [];
  for (;;) {
    const colon = base.lastIndexOf(':');
    const suffix = base.slice(colon + 1);
    if (colon <= 0 || !isSuffix(suffix)) return undefined;
    base = base.slice(0, colon);
    if (!parsed.includes(suffix)) parsed.push(suffix);
    for (const entry of parsed.filter((one) => STATIC.includes(one))) {
      const model = find(`${base}:${entry}`);
      if (model !== undefined) return { model, suffixes: parsed.filter((one) => one !== entry) };
    }
    const model = find(base);
    if (model !== undefined) return { model, suffixes: parsed };
  }
}

/** The options of suffixes without a catalog entry; `:online` is a plugin of the request, not of the model. */
export function variantOf(suffixes: readonly Suffix[]): ModelVariant | undefined {
  if (suffixes.length === 0) return undefined;
  const variant: ModelVariant = {};
  for (const suffix of suffixes) {
    if (suffix === 'free') variant.free = true;
    else if (suffix === 'extended') variant.extended = true;
    else if (suffix === 'thinking') variant.sends = { reasoning: { enabled: true } };
    else if (suffix === 'exacto') variant.sort ??= 'exacto';
    else if (suffix === 'nitro') {
      variant.sort = 'throughput';
      variant.tiers = PRIORITY_TIERS;
    } else if (suffix === 'floor') {
      variant.sort = 'price';
      variant.tiers = FLEX_TIERS;
    }
  }
  return Object.keys(variant).length === 0 ? undefined : variant;
}
