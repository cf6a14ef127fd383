import { limits } from '../../limits.ts';
import { DAY_MS } from '../../schemas/budget.ts';
import { matchesPattern } from '../../schemas/model-pattern.ts';
import { toNano } from '../../schemas/money.ts';
import { MINUTE_MS, type RateAmounts, type RateLimit, type RateRules } from '../../schemas/rate-limit.ts';

/** The caller whose requests are counted. */
export interface RateCaller {
  /** Null for a management key without a record: its organization is counted instead. */
  key_hash: string | null;
  /** The name by which the operator may have set its rates. */
  rate_name?: string | null | undefined;
  organization_id: string;
  /** Credits granted to the organization, nano-USD; undefined: none ever. */
  granted_nano: number | undefined;
  /** The keys that its key was made with: its requests count against their rates too. */
  parents?: readonly Pick<RateCaller, 'key_hash' | 'rate_name'>[] | undefined;
}

/** The requested model, as far as rate limits need it. */
export interface RateModel {
  id: string;
  /** A free variant, at the operator's account. */
  is_free: boolean;
}

/** Decides which limits a request counts against. */
export interface RateBook {
  /** The limits of the caller's key, and of the keys that it was made with. */
  ofKey(caller: RateCaller): readonly RateLimit[];
  /** The limits of a model: shared by all keys, those of the caller's key, and those of free models. */
  ofModel(caller: RateCaller, model: RateModel): readonly RateLimit[];
}

const NONE: readonly RateLimit[] = [];
/** How a refusal names the calling key, and a key that it was made with. */
const OWN = 'This API key';
const PARENTS = 'The API key that this key was made with';

function isUnbounded({ requests_per_minute, tokens_per_minute }: RateAmounts): boolean {
  return requests_per_minute === undefined && tokens_per_minute === undefined;
}

/** The limits of one subject: `name` is its name in a refusal, `whose` the beginning of the sentence. */
function limitsOf(amounts: RateAmounts, { id, name, whose }: { id: string; name: string; whose: string }): RateLimit[] {
  const units = [
    ['requests', amounts.requests_per_minute],
    ['tokens', amounts.tokens_per_minute],
  ] as const;
  return units.flatMap(([unit, amount]) => {
    if (amount === undefined) return [];
    const message = `${name}-${unit}-per-min. ${whose} may use ${amount} ${unit} a minute`;
    return [{ id: `${id}/${unit}`, unit, span_ms: MINUTE_MS, amount, message }];
  });
}

/** The limits of free models. The names are those of the public service, so that its clients recognize them. */
function freeLimits({ free_models }: RateRules, { organization_id, granted_nano = 0 }: RateCaller): RateLimit[] {
  if (free_models === undefined) return [];
  const { requests_per_minute, requests_per_day, requests_per_day_funded, funded_usd } = free_models;
  const isFunded = granted_nano >= toNano(funded_usd);
  const id = `free:${organization_id}`;
  return [
    {
      ...{ id: `${id}/requests`, unit: 'requests', span_ms: MINUTE_MS, amount: requests_per_minute },
      message: 'free-models-per-min.',
    },
    {
      ...{ id: `${id}/requests/day`, unit: 'requests', span_ms: DAY_MS },
      amount: isFunded ? requests_per_day_funded : requests_per_day,
      message: isFunded
        ? 'free-models-per-day-high-balance.'
        : `free-models-per-day. Add ${funded_usd} credits to unlock ${requests_per_day_funded} free model requests per day`,
    },
  ];
}

/** Reads the operator's rules. Lists are computed once for each subject, and remembered up to `rate_counters_max`. */
export function createRateBook(rules: RateRules): RateBook {
  const { per_key, per_model, per_key_and_model, keys, models } = rules;
  const exact = new Map([...models].filter(([pattern]) => !pattern.includes('*')));
  // The longest pattern is the most specific.
  const patterns = [...models.keys()].filter((name) => name.includes('*')).sort((a, b) => b.length - a.length);
  const byName = new Map<string, readonly RateLimit[]>();
  const byModel = new Map<string, readonly RateLimit[]>();
  const keysAreFree = isUnbounded(per_key) && keys.size === 0;
  const pairsAreFree = isUnbounded(per_key_and_model);
  const modelsAreFree = isUnbounded(per_model) && models.size === 0;

  function remembered(
    name: string,
    compute: () => readonly RateLimit[],
    lists: Map<string, readonly RateLimit[]> = byName,
  ): readonly RateLimit[] {
    const known = lists.get(name);
    if (known !== undefined) return known;
    const list = compute();
    if (lists.size >= limits.rate_counters_max) lists.clear();
    lists.set(name, list);
    return list;
  }

  function sharedBy(id: string): readonly RateLimit[] {
    if (modelsAreFree) return NONE;
    const compute = () => {
      const pattern = patterns.find((candidate) => matchesPattern(id, candidate)) ?? '';
      const amounts = exact.get(id) ?? models.get(pattern) ?? per_model;
      return limitsOf(amounts, { id: `model:${id}`, name: 'model', whose: `All requests for ${id} together` });
    };
    // The id itself is the key: a concatenated string would have to be hashed and compared for each lookup.
    return remembered(id, compute, byModel);
  }

  const nameOf = ({ key_hash, organization_id }: RateCaller) =>
    key_hash === null ? `organization:${organization_id}` : `key:${key_hash}`;

  /** The limits of one key: the caller's, or one that it was made with. */
  function ofOne(caller: RateCaller, whose: string): readonly RateLimit[] {
    const { key_hash, rate_name } = caller;
    const amounts = keys.get(key_hash ?? '') ?? keys.get(rate_name ?? '') ?? per_key;
    if (isUnbounded(amounts)) return NONE;
    const id = nameOf(caller);
    // A key may be renamed.
    const name = amounts === per_key ? id : `${id} ${rate_name}`;
    return remembered(whose === OWN ? name : `parent ${name}`, () => limitsOf(amounts, { id, name: 'key', whose }));
  }

  function ofPair(caller: RateCaller, id: string, whose: string): readonly RateLimit[] {
    const pair = `${nameOf(caller)} ${id}`;
    return remembered(`${whose === OWN ? 'pair' : 'parent pair'}:${pair}`, () =>
      limitsOf(per_key_and_model, { id: pair, name: 'key-and-model', whose: `${whose}, for ${id},` }),
    );
  }

  /** The limits of the caller's key, and of each key that it was made with. */
  function ofLineage(
    caller: RateCaller,
    compute: (member: RateCaller, whose: string) => readonly RateLimit[],
  ): readonly RateLimit[] {
    const own = compute(caller, OWN);
    if (caller.parents === undefined) return own;
    return [...own, ...caller.parents.flatMap((parent) => compute({ ...caller, ...parent }, PARENTS))];
  }

  return {
    ofKey: (caller) => (keysAreFree ? NONE : ofLineage(caller, ofOne)),

    ofModel(caller, { id, is_free }) {
      const shared = sharedBy(id);
      if (pairsAreFree && !is_free) return shared;
      const ofPairs = pairsAreFree ? NONE : ofLineage(caller, (member, whose) => ofPair(member, id, whose));
      return [...(is_free ? freeLimits(rules, caller) : NONE), ...ofPairs, ...shared];
    },
  };
}
