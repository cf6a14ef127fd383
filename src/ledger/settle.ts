import type { TokenClasses } from '../schemas/inner.ts';
import { inputTokens, outputTokens } from '../schemas/usage.ts';
import { chargesText, recordText } from './journal/record-values.ts';
import type { Charged, GenerationRecord } from './records.ts';

/** One finished call on its way to the store: what money is added up from, and the record as it will be read. */
export interface Settle {
  id: string;
  organization_id: string;
  workspace_id: string;
  key_hash: string;
  outcome: GenerationRecord['outcome'];
  cost_nano: number;
  /** See `estimatedOf`. */
  estimated_nano: number;
  /** What the provider charged the organization's own account. */
  byok_usage_nano: number;
  created_at: string;
  activity: Activity;
  charges: readonly Charged[];
  /** The charges and the generation record as they are kept: encoded once, for journal and store alike. */
  charged: string;
  record: string;
}

/** What activity is told apart by, and what it counts besides money. */
interface Activity {
  user_id: string;
  model: string;
  model_permaslug: string;
  endpoint_id: string;
  provider_name: string;
  prompt_tokens: number;
  completion_tokens: number;
  reasoning_tokens: number;
}

/** What a node tells the store in one step. Numbered from 1 in each epoch; its content never changes once numbered. */
export interface SettleBatch {
  node: string;
  epoch: number;
  number: number;
  /** Milliseconds since 1970. */
  at: number;
  settles: readonly Settle[];
  /** Every window that a settle names, and those that something is returned to or asked of; each once. */
  windows: readonly WindowAsk[];
  /** Beyond what is wanted, at most this part of what is free is given. */
  divisor: number;
}

/** What a node returns to one window, and what it asks of it. */
export interface WindowAsk {
  budget_id: string;
  window_start: string;
  /** The node has no answer about it yet: the store may not know it. */
  is_new: boolean;
  /** The node's lease before this batch. */
  own: number;
  returned: number;
  /** Less than this is of no use. 0: nobody waits for it, so other nodes are not asked to give back what is idle. */
  need: number;
  /** 0: nothing is asked. */
  want: number;
  /** Beyond what is wanted, for what comes next. */
  slack: number;
  /** Nobody here waits for it any more: other nodes need not give back what is idle. */
  withdraws: boolean;
}

/** How a window stands after a batch. */
export interface WindowState {
  budget_id: string;
  window_start: string;
  /** This node's. */
  lease: number;
  /** All nodes'. */
  leased: number;
  spent: number;
  /** Neither spent nor leased; negative where a limit was lowered or passed; null: no limit any more. */
  free: number | null;
  /** Another node waits for what is idle here. */
  claimed: boolean;
  /** This node is the one for whom others give back what is idle. */
  claims: boolean;
}

/** What a node holds of a window, as the store has it. */
export interface LeaseRow {
  budget_id: string;
  window_start: string;
  amount: number;
}

/** How much of a window is gone, and how much of it all nodes hold. */
export interface WindowSums {
  budget_id: string;
  window_start: string;
  spent: number;
  leased: number;
}

/**
 * `applied` now, or `already_applied` when an answer had been lost. `fenced`: another epoch of this node was registered
 * since. `behind`: the store lost commits that it had acknowledged; `epoch` and `batch` are the last it knows.
 */
export type SettleAnswer =
  | { is: 'applied'; windows: WindowState[]; now: number }
  | { is: 'already_applied'; leases: LeaseRow[]; now: number }
  | { is: 'fenced'; epoch: number }
  | { is: 'behind'; epoch: number; batch: number };

interface Registration {
  node: string;
  /** Names the process that registered, for whoever reads the table. */
  instance: string;
  /** The new epoch is higher than this one and than the store's. */
  epoch_seen: number;
  /** What the store knew of the node when it was asked. Where that has changed since, it registers nothing. */
  known: Position;
  at: number;
}

/** A point in a node's batches: everything up to this batch of this epoch. */
export interface Position {
  epoch: number;
  batch: number;
}

export function isSame(a: Position, b: Position): boolean {
  return a.epoch === b.epoch && a.batch === b.batch;
}

export function isBefore(a: Position, b: Position): boolean {
  return a.epoch < b.epoch || (a.epoch === b.epoch && a.batch < b.batch);
}

/** What the ledger needs of a store. */
export interface LedgerStore {
  /** The last batch of a node that the store knows, with the epoch it was sent in; zeros for a node it never heard of. */
  position(node: string): Promise<Position>;
  /** Raises the node's epoch, which fences every batch of an older one; tells what it holds. Undefined: see `known`. */
  register(registration: Registration): Promise<Registered | undefined>;
  /** Applies a batch whole, once, however often it is sent. */
  settle(batch: SettleBatch): Promise<SettleAnswer>;
  /** What a node with leases should know between its batches. */
  watch(node: string, at: number): Promise<Watched>;
  /** The sums of some windows; of those that nothing was ever spent or set aside in, none. Changes nothing. */
  look(windows: readonly Pick<WindowSums, 'budget_id' | 'window_start'>[]): Promise<WindowSums[]>;
}

export interface Registered {
  epoch: number;
  leases: LeaseRow[];
  /** The store's clock, milliseconds since 1970. */
  now: number;
}

export interface Watched {
  /** Windows of which what is idle here is wanted: another node waits, or the limit was lowered or taken away. */
  wanted: { budget_id: string; window_start: string }[];
  /** Nodes that were heard of lately, this one included. */
  nodes: number;
  now: number;
}

/** Whether an amount can be counted: whole, and not less than nothing. */
export function isMoney(nano: number): boolean {
  return Number.isSafeInteger(nano) && nano >= 0;
}

/** Whether what a generation cost can be counted. */
export function isCountable({ cost_nano, byok_cost_nano = 0 }: GenerationRecord): boolean {
  return isMoney(cost_nano) && isMoney(byok_cost_nano) && isMoney(cost_nano + byok_cost_nano);
}

/**
 * What of a generation's cost is an estimate: of attempts that say so, and of one that was under way when its gateway ended. 0 once an
 * operator has corrected it.
 */
export function estimatedOf({ attempts, fees = [], outcome, cost_nano, is_resolved }: GenerationRecord): number {
  if (is_resolved === true) return 0;
  let estimated_nano = 0;
  let known_nano = 0;
  for (const attempt of attempts) {
    if (attempt.is_byok) continue;
    known_nano += attempt.cost_nano;
    if (attempt.estimated === true) estimated_nano += attempt.cost_nano;
  }
  if (outcome !== 'unknown') return estimated_nano;
  for (const fee of fees) known_nano += fee.cost_nano;
  return estimated_nano + Math.max(0, cost_nano - known_nano);
}

/** What a generation record says to the store. Throws on money that is not whole: it would spoil every sum it enters. */
export function toSettle(generation: GenerationRecord, charges: readonly Charged[]): Settle {
  // As budgets that count own accounts are charged; records of older versions do not tell of earlier attempts.
  const byok_usage_nano = generation.byok_cost_nano ?? (generation.is_byok ? generation.upstream_cost_nano : 0);
  if (!Number.isSafeInteger(generation.cost_nano) || !Number.isSafeInteger(byok_usage_nano)) {
    throw new Error(`Generation ${generation.id} costs ${generation.cost_nano} and ${byok_usage_nano} nano-USD`);
  }
  return {
    id: generation.id,
    organization_id: generation.organization_id,
    workspace_id: generation.workspace_id,
    key_hash: generation.key_hash,
    outcome: generation.outcome,
    cost_nano: generation.cost_nano,
    estimated_nano: estimatedOf(generation),
    byok_usage_nano,
    created_at: generation.created_at,
    activity: activityOf(generation),
    charges,
    charged: chargesText(charges),
    record: recordText(generation),
  };
}

function activityOf(generation: GenerationRecord): Activity {
  const answered = generation.attempts.at(-1);
  const usage: TokenClasses = generation.usage ?? {};
  return {
    user_id: generation.user_id ?? '',
    model: generation.model,
    model_permaslug: answered?.model_permaslug ?? generation.model,
    endpoint_id: generation.endpoint_id ?? '',
    provider_name: generation.provider_name ?? '',
    prompt_tokens: inputTokens(usage),
    completion_tokens: outputTokens(usage),
    reasoning_tokens: usage.out_reasoning ?? 0,
  };
}

/** What one day of one key rises by. */
export interface DayRaise {
  key_hash: string;
  day: string;
  usage_nano: number;
  byok_usage_nano: number;
  requests: number;
  /** When the last of its calls was admitted. */
  last_used_at: string;
}

/** Times of admission are UTC: the day is their beginning. */
function dayOf({ created_at }: Settle): string {
  return created_at.slice(0, 'YYYY-MM-DD'.length);
}

/** In one fixed order, whatever came first: two writers that take rows in different orders wait for each other. */
function inOrder<Raise>(raises: Raise[], nameOf: (raise: Raise) => string): Raise[] {
  return raises.length < 2 ? raises : raises.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}

/** What one day of one key at one model and endpoint rises by. */
export interface ActivityRaise extends Activity {
  organization_id: string;
  workspace_id: string;
  key_hash: string;
  day: string;
  usage_nano: number;
  byok_usage_nano: number;
  requests: number;
  last_used_at: string;
}

/** Where a settle is added up, among what its key's settles have raised. */
function raiseOf(
  raises: readonly ActivityRaise[],
  { created_at, activity: { model, endpoint_id } }: Settle,
): ActivityRaise | undefined {
  for (const raise of raises) {
    if (raise.endpoint_id === endpoint_id && raise.model === model && created_at.startsWith(raise.day)) return raise;
  }
  return undefined;
}

/**
 * Adds up settles by key, UTC day, model and endpoint, in one fixed order. A batch has few of these and many settles: no
 * name is made of each settle.
 */
export function activityRaisesOf(settles: readonly Settle[]): ActivityRaise[] {
  const raises: ActivityRaise[] = [];
  const byKey = new Map<string, ActivityRaise[]>();
  for (const settle of settles) {
    const { key_hash, cost_nano, byok_usage_nano, activity } = settle;
    const ofKey = byKey.get(key_hash);
    const raise = ofKey && raiseOf(ofKey, settle);
    if (raise === undefined) {
      const { organization_id, workspace_id } = settle;
      const used = { usage_nano: cost_nano, byok_usage_nano, requests: 1, last_used_at: settle.created_at };
      const first = { organization_id, workspace_id, key_hash, day: dayOf(settle), ...activity, ...used };
      raises.push(first);
      if (ofKey === undefined) byKey.set(key_hash, [first]);
      else ofKey.push(first);
      continue;
    }
    raise.usage_nano += cost_nano;
    raise.byok_usage_nano += byok_usage_nano;
    raise.requests += 1;
    if (settle.created_at > raise.last_used_at) raise.last_used_at = settle.created_at;
    raise.prompt_tokens += activity.prompt_tokens;
    raise.completion_tokens += activity.completion_tokens;
    raise.reasoning_tokens += activity.reasoning_tokens;
  }
  return inOrder(raises, ({ key_hash, day, model, endpoint_id }) => `${key_hash} ${day} ${model} ${endpoint_id}`);
}

/** Adds up by key and day what activity rises by, in its order. */
export function raisesOf(activity: readonly ActivityRaise[]): DayRaise[] {
  const raises: DayRaise[] = [];
  for (const { key_hash, day, usage_nano, byok_usage_nano, requests, last_used_at } of activity) {
    const last = raises.at(-1);
    if (last?.key_hash !== key_hash || last.day !== day) {
      raises.push({ key_hash, day, usage_nano, byok_usage_nano, requests, last_used_at });
      continue;
    }
    last.usage_nano += usage_nano;
    last.byok_usage_nano += byok_usage_nano;
    last.requests += requests;
    if (last_used_at > last.last_used_at) last.last_used_at = last_used_at;
  }
  return raises;
}

/** What one window rises by, and what its lease falls by. */
export interface WindowRaise extends WindowAsk {
  cost: number;
  /** Settled and returned; never more than the lease. */
  cover: number;
}

/**
 * Adds up settles and asks by window, in one fixed order. A node whose lease was released has nothing left to cover its
 * charges: they are spent all the same.
 */
export function windowRaisesOf(settles: readonly Settle[], windows: readonly WindowAsk[]): WindowRaise[] {
  const raises = windows.map((window): WindowRaise => ({ ...window, cost: 0, cover: 0 }));
  const byBudget = Map.groupBy(raises, ({ budget_id }) => budget_id);
  for (const { charges } of settles) {
    for (const { budget_id, window_start, amount, cover } of charges) {
      const raise = byBudget.get(budget_id)?.find((one) => one.window_start === window_start);
      if (raise === undefined)
        throw new Error(`A settle names the window ${budget_id} ${window_start}, its batch does not`);
      raise.cost += amount;
      raise.cover += Math.min(cover, raise.own - raise.cover);
    }
  }
  for (const raise of raises) raise.cover += Math.min(raise.returned, raise.own - raise.cover);
  return inOrder(raises, ({ budget_id, window_start }) => `${budget_id} ${window_start}`);
}
