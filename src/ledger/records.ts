import type { BudgetMode } from '../schemas/budget.ts';
import type { FinishReason, TokenClasses } from '../schemas/inner.ts';
import type { Stage } from '../schemas/routing-metadata.ts';

/** What one request costs one window: `amount` is spent, and `cover` of it is taken from the node's lease. */
export interface Charged {
  budget_id: string;
  window_start: string;
  amount: number;
  cover: number;
}

/** One line of the arithmetic behind a cost: `units * unit_price_pico`, less the discount. */
export interface ChargeLine {
  /** A class of tokens, or the subject of a fee: `request`, `image`, `web_search`. */
  class: string;
  units: number;
  unit_price_pico: number;
  /** The number of units that the price is for, if not one: a price per second of sound is for 1000 milliseconds. */
  price_units?: number;
  /** The endpoint's discount, in millionths. */
  discount_ppm?: number;
  /** The provider's name of another model that did this work during the attempt. */
  model?: string;
}

/** One attempt at one endpoint, as the generation record stores it. */
export interface AttemptRecord {
  endpoint_id: string;
  provider_name: string;
  model_permaslug: string;
  /** Null if there was no answer (no connection, timeout). */
  status: number | null;
  /** Milliseconds from the send to the first part of the answer, or to the failure. */
  latency: number | null;
  /** Milliseconds before the send, for money, media and the journal. Not set: less than one. */
  wait?: number;
  is_byok: boolean;
  upstream_id: string | null;
  /** Why the gateway fell back to another endpoint; null for the attempt that answered. */
  failure: string | null;
  /** The cost that the organization owes; with `is_byok`, the cost charged to its own account at the provider. */
  cost_nano: number;
  /** Charged input and output tokens. Not set: none, or not known. */
  tokens?: readonly [input: number, output: number];
  /** It continued the text of the attempt before it, whose stream had broken off. */
  continues?: true;
  /** It was sent while the attempt before it was still running. */
  hedges?: true;
  /** The organization's credential that was used. */
  byok_id?: string | null;
  /** Its outcome is not known: `cost_nano` is the most that it may have cost. */
  estimated?: boolean;
  /** The arithmetic of `cost_nano`, which is the sum of the lines rounded up. Not set: nothing was counted. */
  charges?: ChargeLine[];
  /** A price is missing: the full cost is not known, and `cost_nano` is the known part. */
  is_unpriced?: true;
  /** The step of a tool loop that it belongs to, from 2 on. Not set: the first. */
  step?: number;
}

/** Work of a call that no model did: the cost of a web search or of text recognition. */
export interface FeeRecord {
  /** The subject of the fee. */
  name: string;
  cost_nano: number;
  charges: ChargeLine[];
  counts?: TokenClasses['counts'];
}

/** One endpoint of a plan. */
export interface RecordedEndpoint {
  /** The endpoint's id; its tag alone if the model is the record's. */
  id: string;
  tier?: string;
  byok_id?: string;
  weight?: number;
  because?: readonly string[];
  expected_nano?: number;
}

/** How a call was routed. Lists are cut at `limits.routing_recorded_max`. */
export interface RoutingRecord {
  strategy: string;
  /** Not set: weighted random order. */
  sort?: string;
  /** How many endpoints were considered, each with every credential that it could be called with. */
  total: number;
  /** In the order of attempts. */
  plan: readonly RecordedEndpoint[];
  /** Ids of excluded endpoints, by the step that excluded them. */
  excluded?: Record<string, string[]>;
  /** The amount held for the last attempt, and its budgets: scope and interval. */
  hold_nano?: number;
  held_in?: string[];
  /** What guardrails and plugins did. */
  pipeline?: Stage[];
}

/** The facts about a call when one of its attempts begins; part of the journal's attempt records. */
export interface OpenRecord {
  id: string;
  request_id: string;
  /** The operation: the name of a client API of chat, or `embeddings`, `stt`. */
  api_type: string;
  created_at: string;
  key_hash: string;
  workspace_id: string;
  organization_id: string;
  /** The owner of the key. Not set in records of older versions. */
  user_id?: string | null;
  model: string;
  requested_model: string | null;
  provider_name: string | null;
  endpoint_id: string | null;
  streamed: boolean;
  is_byok: boolean;
  external_user: string | null;
  session_id: string | null;
  http_referer: string | null;
  title: string | null;
  categories: string[];
  user_agent: string | null;
  num_media_prompt: number | null;
  num_input_audio_prompt: number | null;
  attempts: AttemptRecord[];
  /** Not set: none. */
  fees?: FeeRecord[];
  /** The caller's tags of the call, see `tagsOf`. Not set: none. */
  tags?: readonly string[];
}

/** The stored record of one finished call: shown by `GET /generation`, and the basis of all sums of money. */
export interface GenerationRecord extends OpenRecord {
  upstream_id: string | null;
  outcome: 'completed' | 'failed' | 'cancelled' | 'unknown';
  cancelled: boolean;
  finish_reason: FinishReason | null;
  native_finish_reason: string | null;
  service_tier: string | null;
  /** Milliseconds to the first token, or to the answer if not streamed. */
  latency: number | null;
  /** Milliseconds from the first byte sent upstream to the last received. */
  generation_time: number | null;
  usage: TokenClasses | null;
  /** Nano-USD, as all amounts here. */
  cost_nano: number;
  upstream_cost_nano: number;
  /** The cost of attempts with the organization's own credentials at the provider; not part of the costs above. Not set in records of older versions. */
  byok_cost_nano?: number;
  cache_discount_nano: number | null;
  /** Not set in records of older versions, and of calls whose end is unknown. */
  routing?: RoutingRecord;
  /** An operator has corrected the estimate. */
  is_resolved?: true;
}

/** One line of a hold: the total reserved amount, and the part that is the last attempt's grant. */
export type HeldLine = [budget_id: string, window_start: string, amount_nano: number, granted_nano: number];

/** The usage and the cost of an attempt so far, as metered by the gateway. */
export interface Metered {
  usage: TokenClasses;
  cost_nano: number;
}

/** `A` is durable before bytes go upstream; `O` is written before the client sees the end of the answer. */
export type JournalRecord =
  /**
   * Start: node, epoch, boot id of the machine, format. `after`: the file that this one continues, and its length. Not set if
   * that file is archived, if there is none, or in files of older versions.
   */
  | { t: 'S'; node: string; epoch: number; boot: string; format: number; after?: [file: string, bytes: number] }
  /**
   * Attempt. `record`: the beginning of the generation record, also used if no outcome is recorded. `hold`: all reserved
   * amounts, earlier attempts' shares included; `grant_nano`: this attempt's part. Written again before a larger grant of a
   * running attempt is used. `least`: the usage of the prompt, and what the attempt is charged at least if its end is unknown
   * and no budget reserves money for it: an estimate of the whole call, or of the prompt alone in records of older versions and
   * with the policy `metered`. Not set if money is reserved, and in records of still older versions.
   */
  | {
      t: 'A';
      id: string;
      attempt: number;
      endpoint: string;
      hold?: HeldLine[];
      grant_nano?: number;
      mode?: BudgetMode;
      is_byok?: boolean;
      least?: Metered;
      record: OpenRecord;
    }
  /** Progress: usage metered so far, every 2 s of a stream. */
  | { t: 'P'; id: string; usage: TokenClasses; cost_nano?: number }
  /** Outcome. */
  | { t: 'O'; id: string; charges?: readonly Charged[]; record: GenerationRecord }
  /** Flushed: acknowledged by the store in this batch. */
  | { t: 'F'; ids: string[]; batch: number }
  /** Clean stop. */
  | { t: 'C' };
