import type { TokenClasses } from '../schemas/inner.ts';
import { inputTokens, outputTokens } from '../schemas/usage.ts';
import { chargesText, recordText } from './journal/record-values.ts';
import { type ListedFacts, listedFactsOf } from './listed-facts.ts';
import type { Charged, GenerationRecord } from './records.ts';
import { type UsageFacts, usageFactsOf } from './usage-facts.ts';

/** One finished call on its way to the store: its amounts, and its generation record. */
export interface Settle {
  id: string;
  organization_id: string;
  workspace_id: string;
  key_hash: string;
  outcome: GenerationRecord['outcome'];
  cost_nano: number;
  /** See `estimatedOf`. */
  estimated_nano: number;
  /** The cost at the provider of the organization's own account. */
  byok_usage_nano: number;
  created_at: string;
  activity: Activity;
  listed: ListedFacts;
  usage: UsageFacts;
  charges: readonly Charged[];
  /** The charges and the generation record as they are stored: encoded once, for journal and store alike. */
  charged: string;
  record: string;
}

/** The dimensions of activity, and its token counts. */
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

/** The data that a node sends the store in one step. Numbered from 1 in each epoch; its content never changes once numbered. */
export interface SettleBatch {
  node: string;
  epoch: number;
  number: number;
  /** Milliseconds since 1970. */
  at: number;
  settles: readonly Settle[];
  /** Every window that a settle names, and those with money to return or to request; each once. */
  windows: readonly WindowRequest[];
  /** Beyond `want`, a grant is at most one part in `divisor` of what is free. */
  divisor: number;
}

/** The amounts that a node returns to one window and requests of it, in nano-USD. */
export interface WindowRequest {
  budget_id: string;
  window_start: string;
  /** The store has not answered about this window yet: it may not know it. */
  is_new: boolean;
  /** The node's lease before this batch. */
  own: number;
  returned: number;
  /** The smallest useful grant. 0: no request waits for it, so other nodes are not made to return idle money. */
  need: number;
  /** 0: nothing is requested. */
  want: number;
  /** Requested beyond `want`, for later requests. */
  slack: number;
  /** No request here waits for it any more: other nodes need not return idle money. */
  withdraws: boolean;
}

/** The state of a window after a batch. Nano-USD. */
export interface WindowState {
  budget_id: string;
  window_start: string;
  /** Leased to this node. */
  lease: number;
  /** Leased to all nodes. */
  leased: number;
  spent: number;
  /** Neither spent nor leased; negative if a limit was lowered or exceeded; null: the budget has no limit any more. */
  free: number | null;
  /** Another node waits for money that is idle here. */
  claimed: boolean;
  /** Other nodes return idle money for this node. */
  claims: boolean;
}

/** The amount of a window that a node holds, by the store. */
export interface LeaseRow {
  budget_id: string;
  window_start: string;
  amount: number;
}

/** How much of a window is spent, and how much is leased to all nodes. */
export interface WindowSums {
  budget_id: string;
  window_start: string;
  spent: number;
  leased: number;
}

/**
 * `applied`: now. `already_applied`: before, and the answer was lost. `fenced`: another epoch of this node has been
 * registered since. `behind`: the store lost commits that it had acknowledged; `epoch` and `batch` are the last it knows.
 */
export type SettleAnswer =
  | { is: 'applied'; windows: WindowState[]; now: number }
  | { is: 'already_applied'; leases: LeaseRow[]; now: number }
  | { is: 'fenced'; epoch: number }
  | { is: 'behind'; epoch: number; batch: number };

interface Registration {
  node: string;
  /** Names the process that registered, for readers of the table. */
  instance: string;
  /** The new epoch is higher than this one and than the store's. */
  epoch_seen: number;
  /** The result of `position`. If it has changed since, nothing is registered. */
  known: Position;
  at: number;
}

/** The store refuses the data of a batch, and would refuse them again. Nothing of the batch was applied. */
export class UnstorableData extends Error {
  override readonly name = 'UnstorableData';
}

/** A point in a node's batches: everything up to `batch` of `epoch`. */
export interface Position {
  epoch: number;
  batch: number;
}

/** Whether two positions are equal. */
export function isSame(a: Position, b: Position): boolean {
  return a.epoch === b.epoch && a.batch === b.batch;
}

/** Whether `a` is before `b`: an earlier epoch, or an earlier batch of the same. */
export function isBefore(a: Position, b: Position): boolean {
  return a.epoch < b.epoch || (a.epoch === b.epoch && a.batch < b.batch);
}

/** The store, as the ledger uses it. All methods reject if the store does not answer. */
export interface LedgerStore {
  /** The last batch of a node that the store knows, with its epoch; zeros for an unknown node. */
  position(node: string): Promise<Position>;
  /** Raises the node's epoch, which fences every batch of an older one, and returns its leases. Undefined if `known` is outdated. */
  register(registration: Registration): Promise<Registered | undefined>;
  /** Applies a batch atomically and once, however often it is sent. Rejects with `UnstorableData` if the data of the batch are at fault. */
  settle(batch: SettleBatch): Promise<SettleAnswer>;
  /** Reads the changes that a node with leases needs between its batches. Marks the node as alive at `at`. */
  watch(node: string, at: number): Promise<Watched>;
  /** Marks a node that neither settles nor watches as alive at `at`. */
  keepAlive(node: string, at: number): Promise<void>;
  /** The sums of some windows; windows without spending or leases are missing. Changes nothing. */
  look(windows: readonly Pick<WindowSums, 'budget_id' | 'window_start'>[]): Promise<WindowSums[]>;
}

/** The answer to a registration. */
export interface Registered {
  epoch: number;
  leases: LeaseRow[];
  /** The store's clock, milliseconds since 1970. */
  now: number;
}

/**
 * Money of a window is scarce if less is free than this multiple of what is leased: then leases that are not used are returned soon.
 * Otherwise no request misses them: what one lease keeps is a small part of what every node can have.
 */
export const SCARCE_TIMES = 8;

/** The answer to `watch`. */
export interface Watched {
  /** Windows whose idle money should be returned: another node waits, or the limit was lowered or removed. */
  wanted: { budget_id: string; window_start: string }[];
  /** Windows of which little is free: see `SCARCE_TIMES`. */
  scarce: { budget_id: string; window_start: string }[];
  /** Whether leases may be kept while they are not used: every node that is active marks windows that are scarce. */
  keeps_leases: boolean;
  /** Nodes that were active lately, this one included. */
  nodes: number;
  now: number;
}

/** Whether an amount is valid: a non-negative safe integer. */
export function isMoney(nano: number): boolean {
  return Number.isSafeInteger(nano) && nano >= 0;
}

/** Whether the cost of a generation is valid. */
export function isCountable({ cost_nano, byok_cost_nano = 0 }: GenerationRecord): boolean {
  const isSafe = Number.isSafeInteger(cost_nano) && Number.isSafeInteger(byok_cost_nano);
  return isSafe && cost_nano >= 0 && byok_cost_nano >= 0 && Number.isSafeInteger(cost_nano + byok_cost_nano);
}

/** Whether an operator may still correct the cost of a generation: part of it is an estimate. */
export function isCorrectable({ attempts, outcome, is_resolved }: GenerationRecord): boolean {
  return is_resolved !== true && (outcome === 'unknown' || attempts.some(({ estimated }) => estimated === true));
}

/**
 * The estimated part of a generation's cost: that of attempts marked so, and of the attempt that was running when its gateway
 * ended. 0 once an operator has corrected it.
 */
export function estimatedOf({ attempts, fees = [], outcome, cost_nano, is_resolved }: GenerationRecord): number {
  if (is_resolved === true) return 0;
  let estimatedNano = 0;
  let knownNano = 0;
  // By index: there is an object for each turn of this loop otherwise.
  for (let at = 0; at < attempts.length; at += 1) {
    const attempt = attempts[at]!;
    if (attempt.is_byok) continue;
    knownNano += attempt.cost_nano;
    if (attempt.estimated === true) estimatedNano += attempt.cost_nano;
  }
  if (outcome !== 'unknown') return estimatedNano;
  for (const fee of fees) knownNano += fee.cost_nano;
  return estimatedNano + Math.max(0, cost_nano - knownNano);
}

/** The settle of a generation record. Throws if a cost is not an integer: it would spoil every sum it enters. */
export function toSettle(generation: GenerationRecord, charges: readonly Charged[]): Settle {
  // The same amount that budgets with own accounts are charged; records of older versions lack the cost of earlier attempts.
  const byokUsageNano = generation.byok_cost_nano ?? (generation.is_byok ? generation.upstream_cost_nano : 0);
  if (!Number.isSafeInteger(generation.cost_nano) || !Number.isSafeInteger(byokUsageNano)) {
    throw new Error(`Generation ${generation.id} costs ${generation.cost_nano} and ${byokUsageNano} nano-USD`);
  }
  const usage: TokenClasses = generation.usage ?? {};
  return {
    id: generation.id,
    organization_id: generation.organization_id,
    workspace_id: generation.workspace_id,
    key_hash: generation.key_hash,
    outcome: generation.outcome,
    cost_nano: generation.cost_nano,
    estimated_nano: estimatedOf(generation),
    byok_usage_nano: byokUsageNano,
    created_at: generation.created_at,
    activity: {
      user_id: generation.user_id ?? '',
      model: generation.model,
      model_permaslug: generation.attempts.at(-1)?.model_permaslug ?? generation.model,
      endpoint_id: generation.endpoint_id ?? '',
      provider_name: generation.provider_name ?? '',
      prompt_tokens: inputTokens(usage),
      completion_tokens: outputTokens(usage),
      reasoning_tokens: usage.out_reasoning ?? 0,
    },
    listed: listedFactsOf(generation),
    usage: usageFactsOf(generation, byokUsageNano),
    charges,
    charged: chargesText(charges),
    record: recordText(generation),
  };
}

/** The increase of one key's day. */
export interface DayRaise {
  key_hash: string;
  day: string;
  usage_nano: number;
  byok_usage_nano: number;
  requests: number;
  /** When the last of its calls was admitted. */
  last_used_at: string;
}

/** The UTC day of a settle: times of admission are in UTC. */
function dayOf({ created_at }: Settle): string {
  return created_at.slice(0, 'YYYY-MM-DD'.length);
}

/** Sorts in one fixed order: two writers that lock rows in different orders would deadlock. */
function inOrder<Raise>(raises: Raise[], nameOf: (raise: Raise) => string): Raise[] {
  return raises.length < 2 ? raises : raises.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}

/** The increase of one day of one key at one model and endpoint. */
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

/** The raise that a settle is added to, among those of its key. */
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
 * Sums settles by key, UTC day, model and endpoint, in one fixed order. A batch has few of these and many settles, so no map
 * key is built for each settle.
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

/** Sums activity by key and day, in the order of `activity`. */
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

/** The increase of one window, and the decrease of its lease. */
export interface WindowRaise extends WindowRequest {
  cost: number;
  /** Settled and returned; never more than the lease. */
  cover: number;
}

/**
 * Sums settles and lease requests by window, in one fixed order. A node whose lease was released has nothing left to cover
 * its charges: they are spent nevertheless. Throws if a settle names a window that the batch does not.
 */
export function windowRaisesOf(settles: readonly Settle[], windows: readonly WindowRequest[]): WindowRaise[] {
  const raises = windows.map((window): WindowRaise => ({ ...window, cost: 0, cover: 0 }));
  const byBudget = Map.groupBy(raises, ({ budget_id }) => budget_id);
  for (const { charges } of settles) {
    for (let at = 0; at < charges.length; at += 1) {
      const { budget_id, window_start, amount, cover } = charges[at]!;
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
