import { subjectsOf } from '../accounts/budget.ts';
import { isUsable } from '../accounts/key.ts';
import type { Principal } from '../http/principal.ts';
import { createProber, type ProberOptions } from '../inference/observe/prober.ts';
import { limits } from '../limits.ts';
import { toNano } from '../schemas/money.ts';
import { budgetStore } from '../storage/budgets.ts';
import type { Database } from '../storage/database.ts';
import { endpointProbeStore } from '../storage/endpoint-probes.ts';
import { keyStore } from '../storage/keys.ts';
import type { Home } from '../storage/organizations.ts';
import { callerOf } from './authenticate.ts';
import type { Change } from './change.ts';
import { keepProbeKey, probeKeyHash } from './keys/keep-probe-key.ts';
import { generationId } from './shared/call-of.ts';

export interface ProbesOptions extends Omit<ProberOptions, 'principal' | 'claim' | 'generationId'> {
  usd_per_day: number;
  database: Database;
  change: Change;
  home: Home;
}

/** Makes the probes of endpoints. They are paid by a key of their own, whose daily limit bounds them on all nodes together. */
export function createProbes({ usd_per_day, database, change, home, ...options }: ProbesOptions) {
  const { clock, log } = options;
  const keys = keyStore(database.queries);
  const budgets = budgetStore(database.queries);
  const store = endpointProbeStore(database.queries, database.engine);
  const hash = probeKeyHash(home.organization_id);
  let sweptMs = 0;

  async function principal(): Promise<Principal | null> {
    const key = await keys.findByHash(hash);
    // Without a budget nothing would bound the probes.
    if (key === undefined || key.limit_nano === null || !isUsable(key, clock.nowMs())) return null;
    const caller = callerOf(key);
    // Probes contain no data of clients, so no guardrails apply.
    return { ...caller, budgets: await budgets.findBySubjects(subjectsOf(caller)), guardrails: [] };
  }

  async function claim(endpointId: string, everyMs: number): Promise<boolean> {
    const nowMs = clock.nowMs();
    if (nowMs - sweptMs > limits.statistics_quarters_keep_ms) {
      sweptMs = nowMs;
      await store.sweep(nowMs - limits.statistics_quarters_keep_ms);
    }
    return store.claim(endpointId, everyMs, nowMs);
  }

  const prober = createProber({ ...options, principal, claim, generationId });
  return {
    /** Sets the budget of the key, then begins. If the store fails now, probes stay off until the next start. */
    async start(): Promise<void> {
      try {
        await keepProbeKey({ change, home, limit_nano: toNano(usd_per_day) });
      } catch (err) {
        log.warn({ err }, 'endpoints are not probed: the key for probes could not be stored');
        return;
      }
      prober.start();
    },
    stop: () => prober.stop(),
  };
}
