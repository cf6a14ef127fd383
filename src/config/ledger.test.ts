import { expect, test } from 'vitest';
import { loadConfig } from '../config.ts';

const load = (text: string) => loadConfig({}, { config_file_content: { path: 'gateway.yaml', text } });

const SERVE = 'ledger: { on_store_outage: { serve_for: 60 }, lost_node_release_after: ';

test('money of a lost node is booked only after all that it may still serve without the store', () => {
  const { ledger } = load(`${SERVE} 3661 }`);
  expect(ledger).toMatchObject({ lost_node_release_after: 3661, serve_without_store_ms: 60_000 });
  expect(load('{}').ledger.lost_node_release_after).toBeUndefined();
});

test.each([
  [`${SERVE} 3660 }`, /must be more than 3660 seconds, which is ledger.on_store_outage.serve_for plus timeouts/],
  [`${SERVE} 75 }\ntimeouts: { upstream_total_ms_max: 15000 }`, /must be more than 75 seconds, which is ledger.on_st/],
  [
    'ledger: { lost_node_release_after: 60 }\ntimeouts: { upstream_total_ms_max: 15000 }',
    /must be more than 60 seconds, after which a node without a sign of life counts as lost/,
  ],
  ['ledger: { on_store_outage: { serve_for: 301 } }', /serve_for must be a whole number of seconds from 1 to 300/],
])('%s is refused', (text, message) => {
  expect(() => load(text)).toThrow(message);
});
