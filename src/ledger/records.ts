import type { BudgetMode } from '../schemas/budget.ts';
import type { FinishReason, TokenClasses } from '../schemas/inner.ts';
import type { Stage } from '../schemas/routing-metadata.ts';

/** What one request costs one window: `amount` is spent, and `cover` of it comes out of the node's lease. */
export interface Charged {
  budget_id: string;
  window_start: string;
  amount: number;
  cover: number;
}

/** One line of the arithmetic behind a cost: `units * unit_price_pico`, less the discount. */
export interface ChargeLine {
  /** A class of tokens, or what a fee is for: `request`, `image`, `web_search`. */
  class: string;
  units: number;
  unit_price_pico: number;
  /** How many units the price is of, where it is not one: a second is 1000 of sound's milliseconds. */
  price_units?: number;
  /** What the endpoint takes off its price, in millionths. */
  discount_ppm?: number;
  /** The provider's name of another model that did this in the course of the attempt. */
  model?: string;
}

/** One try of one endpoint, as the generation record keeps it. */
export interface AttemptRecord {
  endpoint_id: string;
  provider_name: string;
  model_permaslug: string;
  /** Null when there was no answer (no connection, timeout). */
  status: number | null;
  /** Milliseconds from the send to the first of the answer, or to the failure. */
  latency: number | null;
  /** Milliseconds before the send, for money, media and the journal. Absent: less than one. */
  wait?: number;
  is_byok: boolean;
  upstream_id: string | null;
  /** Why the gateway moved on; null for the attempt that answered. */
  failure: string | null;
  /** What the organization owes for it; what its own account at the provider was charged, where `is_byok`. */
  cost_nano: number;
  /** Tokens in and out that it was charged for. Absent: none, or a number that nobody knows. */
  tokens?: readonly [input: number, output: number];
  /** It went on with the text of the attempt before it, which had broken off. */
  continues?: true;
  /** It was sent while the attempt before it was still running. */
  hedges?: true;
  /** The credential of the organization that was used. */
  byok_id?: string | null;
  /** Its outcome is not known: `cost_nano` is what it may have cost at most. */
  estimated?: boolean;
  /** The arithmetic of `cost_nano`, which is their sum rounded up. Absent: nothing was counted. */
  charges?: ChargeLine[];
  /** A price is missing: the cost is not known, and `cost_nano` is the part that is. */
  is_unpriced?: true;
  /** Which step of an answer with tools of the gateway's it was for, from 2 on. Absent: the first. */
  step?: number;
}

/** Work of a call that no model did: what a search or a reading of pictures cost the organization. */
export interface FeeRecord {
  /** What it was for. */
  name: string;
  cost_nano: number;
  charges: ChargeLine[];
  counts?: TokenClasses['counts'];
}

/** One endpoint of a plan. */
export interface RecordedEndpoint {
  /** Of the endpoint; its tag alone, where the model is the record's. */
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
  /** Absent: by a draw. */
  sort?: string;
  /** Of endpoints that were considered, each with every credential that it could be called with. */
  total: number;
  /** In order. */
  plan: RecordedEndpoint[];
  /** Ids, by the step that left them out. */
  excluded?: Record<string, string[]>;
  /** What was set aside for the last attempt, and in which budgets: scope and interval. */
  hold_nano?: number;
  held_in?: string[];
  /** What guardrails and plugins did. */
  pipeline?: Stage[];
}

/** What is known of a call when an attempt of it begins: what the journal keeps of an attempt. */
export interface OpenRecord {
  id: string;
  request_id: string;
  /** By which operation the call came: a client API of chat by its own word, or `embeddings`, `stt`. */
  api_type: string;
  created_at: string;
  key_hash: string;
  workspace_id: string;
  organization_id: string;
  /** The owner of the key. Absent in records of older versions. */
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
  /** Absent: there were none. */
  fees?: FeeRecord[];
}

/** The stored fact of one finished call: what `GET /generation` shows, and what the money is added up from. */
export interface GenerationRecord extends OpenRecord {
  upstream_id: string | null;
  outcome: 'completed' | 'failed' | 'cancelled' | 'unknown';
  cancelled: boolean;
  finish_reason: FinishReason | null;
  native_finish_reason: string | null;
  service_tier: string | null;
  /** Milliseconds to the first token (to the answer when not streamed). */
  latency: number | null;
  /** Milliseconds from the first byte sent upstream to the last received. */
  generation_time: number | null;
  usage: TokenClasses | null;
  /** USD is integer nano-USD here. */
  cost_nano: number;
  upstream_cost_nano: number;
  /** What attempts with the organization's own credentials cost there; in none of the costs above. Absent in records of older versions. */
  byok_cost_nano?: number;
  cache_discount_nano: number | null;
  /** Absent in records of older versions, and of calls whose end was never told. */
  routing?: RoutingRecord;
  /** An operator has corrected what was an estimate. */
  is_resolved?: true;
}

/** One line of a hold: what is set aside in all, and what of it is the last attempt's grant. */
export type HeldLine = [budget_id: string, window_start: string, amount_nano: number, granted_nano: number];

/** What an attempt has used and cost so far, as far as the gateway can tell. */
export interface Metered {
  usage: TokenClasses;
  cost_nano: number;
}

/**
 * The journal's records: one JSON line each, `t` first (`lineOf`). See docs/decisions for the crash matrix.
 * `A` is durable before bytes go upstream; `O` is written before the client sees the end.
 */
export type JournalRecord =
  /**
   * Start: node, epoch, boot id of the machine, format. `after`: the file that this one goes on from, and how long that was; absent:
   * it was put away, there is none, or the file is of an older version.
   */
  | { t: 'S'; node: string; epoch: number; boot: string; format: number; after?: [file: string, bytes: number] }
  /**
   * Attempt. `record` is what the generation record begins with, also where the outcome is never told. `hold`: everything that is
   * set aside, earlier attempts' share included; `grant_nano`: this attempt's part of it. Written again, before it is
   * relied on, when the grant of a running attempt becomes larger. `least`: its prompt, and what it is charged at the least
   * where nobody knows its end and nothing is set aside for it: an estimate of the whole call; in records of older versions, or where the
   * policy is to charge what is seen, of its prompt. Absent where something is set aside, and in records of still older versions.
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
  /** Progress: metered so far, every 2 s of a stream. */
  | { t: 'P'; id: string; usage: TokenClasses; cost_nano?: number }
  /** Outcome. */
  | { t: 'O'; id: string; charges?: readonly Charged[]; record: GenerationRecord }
  /** Flushed: acknowledged by the store in this batch. */
  | { t: 'F'; ids: string[]; batch: number }
  /** Clean stop. */
  | { t: 'C' };
