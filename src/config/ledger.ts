import { limits } from '../limits.ts';
import type { ReadFile } from './read-file.ts';
import { type Filled, filled } from './settings/declare.ts';
import { ledger } from './settings/service.ts';

/** How money is kept, and which entries of the journal are kept for how long: the declared settings of `ledger`. */
export interface LedgerConfig extends Omit<Filled<typeof ledger.settings>, 'on_store_outage'> {
  /** How long recently used keys are served while the store does not answer; 0: requests are refused. */
  serve_without_store_ms: number;
}

/** Reads the section `ledger`. `callMsMax`: the duration of the longest call. */
export function readLedger(file: ReadFile | undefined, callMsMax: number): LedgerConfig {
  const { on_store_outage, ...settings } = filled(ledger, file?.value.ledger);
  const { lost_node_release_after: releaseS } = settings;
  const serveForS = on_store_outage?.serve_for ?? 0;
  const [lostS, busyS] = [limits.node_lost_ms / 1000, serveForS + callMsMax / 1000];
  const leastS = Math.max(lostS, busyS);
  if (file !== undefined && releaseS !== undefined && releaseS <= leastS) {
    const reason =
      busyS < lostS
        ? 'after which a node without a sign of life counts as lost'
        : 'which is ledger.on_store_outage.serve_for plus timeouts.upstream_total_ms_max';
    throw file.wrong(
      ['ledger', 'lost_node_release_after'],
      `must be more than ${Math.ceil(leastS)} seconds, ${reason}`,
    );
  }
  return { ...settings, serve_without_store_ms: serveForS * 1000 };
}
