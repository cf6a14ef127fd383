import type { Model } from '../../catalog/model.ts';
import { GatewayError } from '../../errors.ts';

/** The ids that an unknown name is compared with, the longest name that is compared, and the greatest distance in letters. */
const NEAR_MODELS_MAX = 5_000;
const NEAR_NAME_CHARS_MAX = 100;
const NEAR_DISTANCE_MAX = 3;

/** The models that names are looked up in. */
export interface KnownModels {
  models(): readonly Model[];
  /** How to turn on a model that is known but not served; undefined if the id is not known. */
  unserved?(id: string): string | undefined;
}

/** The Levenshtein distance of two words; undefined if it is above `most`. Computes only cells within that distance of the diagonal. */
function distance(one: string, other: string, most: number): number | undefined {
  if (Math.abs(one.length - other.length) > most) return undefined;
  let row = Array.from({ length: other.length + 1 }, (_, at) => (at <= most ? at : most + 1));
  for (let i = 1; i <= one.length; i += 1) {
    const next = new Array<number>(other.length + 1).fill(most + 1);
    if (i <= most) next[0] = i;
    let least = next[0]!;
    for (let j = Math.max(1, i - most); j <= Math.min(other.length, i + most); j += 1) {
      const replaced = row[j - 1]! + (one[i - 1] === other[j - 1] ? 0 : 1);
      next[j] = Math.min(replaced, row[j]! + 1, next[j - 1]! + 1);
      least = Math.min(least, next[j]!);
    }
    if (least > most) return undefined;
    row = next;
  }
  const result = row[other.length]!;
  return result > most ? undefined : result;
}

const slugOf = (id: string) => id.slice(id.indexOf('/') + 1);

/** The id that a name probably means: the same slug of another author or of none, or a small distance. */
function near(name: string, models: readonly Model[], allows: (model: Model) => boolean): string | undefined {
  if (name.length > NEAR_NAME_CHARS_MAX) return undefined;
  const lowercase = name.toLowerCase();
  const slug = slugOf(lowercase);
  const most = Math.min(NEAR_DISTANCE_MAX, Math.floor(lowercase.length / 5));
  let best: { id: string; distance: number } | undefined;
  for (const model of models.slice(0, NEAR_MODELS_MAX)) {
    const id = model.id.toLowerCase();
    const letters = slugOf(id) === slug ? 0 : distance(lowercase, id, best === undefined ? most : best.distance - 1);
    if (letters === undefined || (best !== undefined && letters >= best.distance) || !allows(model)) continue;
    best = { id: model.id, distance: letters };
    if (letters === 0) break;
  }
  return best?.id;
}

/** A name without suffixes such as `:free`, which are not part of an id. */
function withoutSuffixes(name: string): string {
  const parts = name.split(':');
  while (parts.length > 1 && /^[a-z]+$/.test(parts.at(-1)!)) parts.pop();
  return parts.join(':');
}

/**
 * The refusal of an unknown model name: a 404 with how to turn the model on if that is known, otherwise an error of `status` that
 * suggests the nearest model that the caller may use.
 */
export function unknownModel(
  name: string,
  known: KnownModels,
  { status, field, allows = () => true }: { status: 400 | 404; field?: string; allows?: (model: Model) => boolean },
): GatewayError {
  const metadata = field === undefined ? {} : { metadata: { field } };
  const unserved = known.unserved?.(name) ?? known.unserved?.(withoutSuffixes(name));
  if (unserved !== undefined) return new GatewayError(404, unserved, metadata);
  const nearest = near(name, known.models(), allows);
  const hint = nearest === undefined ? '' : `; did you mean ${nearest}?`;
  return new GatewayError(status, `${name} is not a valid model ID${hint}`, metadata);
}

/** The model of this id, for operations other than chat. Throws a 404 for an unknown one. */
export function knownModel(id: string, catalog: KnownModels & { find(id: string): Model | undefined }): Model {
  const model = catalog.find(id);
  if (model === undefined) throw unknownModel(id, catalog, { status: 404 });
  return model;
}
