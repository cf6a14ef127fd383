import { limits } from '../../limits.ts';
import { DAY_MS } from '../../schemas/budget.ts';
import { matchesPattern } from '../../schemas/model-pattern.ts';
import { toNano } from '../../schemas/money.ts';
import { MINUTE_MS, type RateAmounts, type RateLimit, type RateRules } from '../../schemas/rate-limit.ts';

/** Whose requests are counted. */
export interface RateCaller {
  /** Null: a management key without a record; its organization stands for it. */
  key_hash: string | null;
  /** The name by which the operator may have set its rates. */
  rate_name?: string | null | undefined;
  organization_id: string;
  /** What was granted to the organization, nano-USD; undefined: nothing ever was. */
  granted_nano: number | undefined;
  /** The keys that its key was made with: their rates count its requests too. */
  parents?: readonly Pick<RateCaller, 'key_hash' | 'rate_name'>[] | undefined;
}

/** What is asked for, as far as limits can tell. */
export interface RateModel {
  id: string;
  /** A variant that costs nothing, at the operator's account. */
  is_free: boolean;
}

/** Which limits a request counts against. */
export interface RateBook {
  ofKey(caller: RateCaller): readonly RateLimit[];
  ofModel(caller: RateCaller, model: RateModel): readonly RateLimit[];
}

const NONE: readonly RateLimit[] = [];
/** How a refusal calls the key that calls, and one that it was made with. */
const OWN = 'This API key';
const PARENTS = 'The API key that this key was made with';

function isUnbounded({ requests_per_minute, tokens_per_minute }: RateAmounts): boolean {
  return requests_per_minute === undefined && tokens_per_minute === undefined;
}

/** The limits of one subject: `name` is what it is called in a refusal, `whose` the sentence's beginning. */
function limitsOf(amounts: RateAmounts, { id, name, whose }: { id: string; name: string; whose: string }): RateLimit[] {
  const units = [
    ['requests', amounts.requests_per_minute],
    ['tokens', amounts.tokens_per_minute],
  ] as const;
  return units.flatMap(([unit, amount]) => {
    if (amount === undefined) return [];
    const told = `${name}-${unit}-per-min. ${whose} may use ${amount} ${unit} a minute`;
    return [{ id: `${id}/${unit}`, unit, span_ms: MINUTE_MS, amount, told }];
  });
}

/** Free models: the names are the public service's, so that clients that know them know these. */
function freeLimits({ free_models }: RateRules, { organization_id, granted_nano = 0 }: RateCaller): RateLimit[] {
  if (free_models === undefined) return [];
  const { requests_per_minute, requests_per_day, requests_per_day_funded, funded_usd } = free_models;
  const is_funded = granted_nano >= toNano(funded_usd);
  const id = `free:${organization_id}`;
  return [
    {
      ...{ id: `${id}/requests`, unit: 'requests', span_ms: MINUTE_MS, amount: requests_per_minute },
      told: 'free-models-per-min.',
    },
    {
      ...{ id: `${id}/requests/day`, unit: 'requests', span_ms: DAY_MS },
      amount: is_funded ? requests_per_day_funded : requests_per_day,
      told: is_funded
        ? 'free-models-per-day-high-balance.'
        : `free-models-per-day. Add ${funded_usd} credits to unlock ${requests_per_day_funded} free model requests per day`,
    },
  ];
}

/** Reads the operator's rules; what holds for a model is found once. */
export function createRateBook(rules: RateRules): RateBook {
  const { per_key, per_model, per_key_and_model, keys, models } = rules;
  const exact = new Map([...models].filter(([pattern]) => !pattern.includes('*')));
  // The longest says most.
  const patterns = [...models.keys()].filter((one) => one.includes('*')).sort((a, b) => b.length - a.length);
  const known = new Map<string, readonly RateLimit[]>();
  const of_models = new Map<string, readonly RateLimit[]>();
  const keys_are_free = isUnbounded(per_key) && keys.size === 0;
  const pairs_are_free = isUnbounded(per_key_and_model);
  const models_are_free = isUnbounded(per_model) && models.size === 0;

  function remembered(
    name: string,
    find: () => readonly RateLimit[],
    lists: Map<string, readonly RateLimit[]> = known,
  ): readonly RateLimit[] {
    const found = lists.get(name);
    if (found !== undefined) return found;
    const list = find();
    if (lists.size >= limits.rate_counters_max) lists.clear();
    lists.set(name, list);
    return list;
  }

  function sharedBy(id: string): readonly RateLimit[] {
    if (models_are_free) return NONE;
    const find = () => {
      const pattern = patterns.find((one) => matchesPattern(id, one)) ?? '';
      const amounts = exact.get(id) ?? models.get(pattern) ?? per_model;
      return limitsOf(amounts, { id: `model:${id}`, name: 'model', whose: `All requests for ${id} together` });
    };
    // By the id itself: a text that is joined for a look-up has to be hashed and compared each time.
    return remembered(id, find, of_models);
  }

  const nameOf = ({ key_hash, organization_id }: RateCaller) =>
    key_hash === null ? `organization:${organization_id}` : `key:${key_hash}`;

  /** The limits of one key: the caller's, or one that it was made with. */
  function ofOne(caller: RateCaller, whose: string): readonly RateLimit[] {
    const { key_hash, rate_name } = caller;
    const amounts = keys.get(key_hash ?? '') ?? keys.get(rate_name ?? '') ?? per_key;
    if (isUnbounded(amounts)) return NONE;
    const id = nameOf(caller);
    // A key may be given another name.
    const name = amounts === per_key ? id : `${id} ${rate_name}`;
    return remembered(whose === OWN ? name : `parent ${name}`, () => limitsOf(amounts, { id, name: 'key', whose }));
  }

  function ofPair(caller: RateCaller, id: string, whose: string): readonly RateLimit[] {
    const pair = `${nameOf(caller)} ${id}`;
    return remembered(`${whose === OWN ? 'pair' : 'parent pair'}:${pair}`, () =>
      limitsOf(per_key_and_model, { id: pair, name: 'key-and-model', whose: `${whose}, for ${id},` }),
    );
  }

  /** What holds for the caller's key, and the same for each that it was made with. */
  function ofLineage(
    caller: RateCaller,
    find: (one: RateCaller, whose: string) => readonly RateLimit[],
  ): readonly RateLimit[] {
    const own = find(caller, OWN);
    if (caller.parents === undefined) return own;
    return [...own, ...caller.parents.flatMap((parent) => find({ ...caller, ...parent }, PARENTS))];
  }

  return {
    ofKey: (caller) => (keys_are_free ? NONE : ofLineage(caller, ofOne)),

    ofModel(caller, { id, is_free }) {
      const shared = sharedBy(id);
      if (pairs_are_free && !is_free) return shared;
      const of_pair = pairs_are_free ? NONE : ofLineage(caller, (one, whose) => ofPair(one, id, whose));
      return [...(is_free ? freeLimits(rules, caller) : NONE), ...of_pair, ...shared];
    },
  };
}
