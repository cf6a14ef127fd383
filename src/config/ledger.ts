import { limits } from '../limits.ts';
import type { ReadFile } from './read-file.ts';

/** How money is kept, and what of it is written down for how long. */
export interface LedgerConfig {
  journal_sync: 'group' | 'os';
  /** Settled segments of the journal are kept so long, and so many bytes of journal, for a store that is set back. */
  journal_keep_hours: number;
  journal_keep_bytes: number;
  /** What a node has set aside that was not heard of for so many seconds is booked as spent; undefined: an operator releases it. */
  lost_node_release_after: number | undefined;
  /** Whether an endpoint whose price is not known may serve; what it serves is then recorded as costing nothing. */
  unknown_price: 'refuse' | 'allow';
  /** `strict`: true charges never pass a limit. `soft`: an estimate is set aside in place of the worst case. */
  budgets: 'strict' | 'soft';
  /** Of soft budgets: the estimate of the whole answer is set aside at once, or a slice at a time. */
  hold: 'full' | 'sliced';
  /** What an attempt costs whose end nobody knows: what was set aside or is expected, or (soft only) what was metered. */
  unknown_outcome: 'hold' | 'metered';
  /** For how long keys seen lately are served while the store does not answer; 0: they are refused. */
  serve_without_store_ms: number;
  /** The output bound of a request under a budget that names none; undefined: the model's own, as far as a share of what is left pays for it. */
  default_output_tokens: number | undefined;
  /** An output bound is never lowered below it for want of money. */
  min_output_tokens: number;
}

/** Reads the section `ledger`. `call_ms_max`: how long the longest call may take. */
export function readLedger(file: ReadFile | undefined, call_ms_max: number): LedgerConfig {
  const section = file?.value.ledger;
  const release_s = section?.lost_node_release_after;
  const serve_for_s = section?.on_store_outage?.serve_for ?? 0;
  const least_s = Math.max(limits.node_lost_ms / 1000, serve_for_s + call_ms_max / 1000);
  if (file !== undefined && release_s !== undefined && release_s <= least_s) {
    throw file.wrong(
      ['ledger', 'lost_node_release_after'],
      `must be more than ${Math.ceil(least_s)} seconds, which is ledger.on_store_outage.serve_for plus timeouts.upstream_total_ms_max`,
    );
  }
  return {
    journal_sync: section?.journal_sync ?? 'group',
    journal_keep_hours: section?.journal_keep_hours ?? limits.journal_keep_ms / 3_600_000,
    journal_keep_bytes: section?.journal_keep_bytes ?? limits.journal_keep_bytes_max,
    lost_node_release_after: release_s,
    unknown_price: section?.unknown_price ?? 'refuse',
    budgets: section?.budgets ?? 'strict',
    hold: section?.hold ?? 'full',
    unknown_outcome: section?.unknown_outcome ?? 'hold',
    serve_without_store_ms: serve_for_s * 1000,
    default_output_tokens: section?.default_output_tokens,
    min_output_tokens: section?.min_output_tokens ?? limits.output_tokens_min,
  };
}
