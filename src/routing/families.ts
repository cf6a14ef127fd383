import type { Model } from '../catalog/model.ts';

/** A word of a name that is a version, not part of the family: `4.5`, `4o`, `v3`, `k2`, a date, `preview`. Sizes such as `70b` stay. */
const VERSION = /^(?:v?\d+(?:\.\d+)*[a-z]?|[a-z]\d+(?:\.\d+)*|preview|exp|experimental|beta|latest|customtools)$/;
const SIZE = /^\d+(?:\.\d+)?[bm]$/;

/** The family of a model, `anthropic/claude-sonnet` for `anthropic/claude-sonnet-4.5`: its name without the version. */
export function familyOf(id: string): string {
  const slash = id.indexOf('/');
  const [first = '', ...rest] = id.slice(slash + 1).split('-');
  const words = rest.filter((word) => SIZE.test(word) || !VERSION.test(word));
  return `${id.slice(0, slash)}/${[first, ...words].join('-')}`;
}

const known = new WeakMap<readonly Model[], ReadonlyMap<string, Model>>();

/**
 * The aliases `~author/family-latest` of a catalog, each with the newest model of its family that has not expired, else the newest: by
 * creation date, then by name. Models without text output and variants belong to no family. Computed once per list of models.
 */
export function latestModels(models: readonly Model[]): ReadonlyMap<string, Model> {
  const cached = known.get(models);
  if (cached !== undefined) return cached;
  const latest = new Map<string, Model>();
  for (const model of models) {
    if (model.id.includes(':') || !model.output_modalities.includes('text')) continue;
    const alias = `~${familyOf(model.id)}-latest`;
    const other = latest.get(alias);
    if (other === undefined || isNewer(model, other)) latest.set(alias, model);
  }
  known.set(models, latest);
  return latest;
}

function isNewer(one: Model, other: Model): boolean {
  if (one.is_expired !== other.is_expired) return one.is_expired === undefined;
  return one.created === other.created ? one.id > other.id : one.created > other.created;
}
