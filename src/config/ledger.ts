import { limits } from '../limits.ts';
import type { ReadFile } from './read-file.ts';
import { type Filled, filled } from './settings/declare.ts';
import { ledger } from './settings/service.ts';

/** How money is kept, and which entries of the journal are kept for how long: the declared settings of `ledger`. */
export interface LedgerConfig extends Omit<Filled<typeof ledger.settings>, 'on_store_outage'> {
  /** For how long keys seen lately are served while the store does not answer; 0: they are refused. */
  serve_without_store_ms: number;
}

/** Reads the section `ledger`. `call_ms_max`: how long the longest call may take. */
export function readLedger(file: ReadFile | undefined, call_ms_max: number): LedgerConfig {
  const { on_store_outage, ...settings } = filled(ledger, file?.value.ledger);
  const { lost_node_release_after: release_s } = settings;
  const serve_for_s = on_store_outage?.serve_for ?? 0;
  const least_s = Math.max(limits.node_lost_ms / 1000, serve_for_s + call_ms_max / 1000);
  if (file !== undefined && release_s !== undefined && release_s <= least_s) {
    throw file.wrong(
      ['ledger', 'lost_node_release_after'],
      `must be more than ${Math.ceil(least_s)} seconds, which is ledger.on_store_outage.serve_for plus timeouts.upstream_total_ms_max`,
    );
  }
  return { ...settings, serve_without_store_ms: serve_for_s * 1000 };
}
