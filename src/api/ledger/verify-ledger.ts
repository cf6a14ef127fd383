import Type from 'typebox';
import { GatewayError } from '../../errors.ts';
import { createRateLimit } from '../../http/rate-limit.ts';
import type { Server } from '../../http/server.ts';
import type { Clock } from '../../inference/call.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { errors } from '../../schemas/error.ts';
import { LedgerVerification } from '../../schemas/ledger.ts';
import type { Verification } from '../../storage/verify-ledger.ts';
import { recentOutcomes } from '../recent-outcomes.ts';
import { requireHome } from './get-ledger-status.ts';

const VERIFY_SECONDS_MAX = 60;
const VERIFICATIONS_PER_MINUTE = 4;

export interface VerifyLedgerOptions {
  /** Verifies over a connection of its own; rejects with an `AbortError` when the signal says so. */
  verify: (signal: AbortSignal) => Promise<Verification>;
  recorder: Pick<Recorder, 'flush'>;
  home: { organization_id: string };
  clock: Clock;
}

/** Serves `POST /ledger/verify`: one at a time on a node, over a connection that requests do not use. */
export function verifyLedgerNow(server: Server, { verify, recorder, home, clock }: VerifyLedgerOptions): void {
  const limit = createRateLimit(VERIFICATIONS_PER_MINUTE, clock, 'verifications');
  let isRunning = false;
  server.route({
    method: 'POST',
    url: '/ledger/verify',
    config: { access: 'management' },
    schema: {
      operationId: 'verifyLedger',
      tags: ['Ledger'],
      summary: 'Recomputes every limit window and every day from the generations, and returns the differences.',
      description:
        `The same as the command \`ledger verify\`. Changes nothing. Takes at most ${VERIFY_SECONDS_MAX} seconds: for a larger store use the command. ` +
        'For management keys and administrators of the organization that runs the gateway.',
      response: { 200: Type.Object({ data: LedgerVerification }), ...errors(401, 403, 409, 429, 500, 503) },
    },
    handler: async (request) => {
      requireHome(request, home);
      if (isRunning) throw new GatewayError(409, 'A verification is running on this node; wait for its end');
      limit('all');
      isRunning = true;
      const signal = AbortSignal.timeout(VERIFY_SECONDS_MAX * 1000);
      const from = clock.monotonicMs();
      try {
        await recentOutcomes(recorder);
        const { generations, windows, differences } = await verify(signal);
        return {
          data: { generations, windows, differences, seconds: (clock.monotonicMs() - from) / 1000 },
        };
      } catch (cause) {
        if (!signal.aborted) throw cause;
        throw new GatewayError(
          503,
          `The verification took more than ${VERIFY_SECONDS_MAX} s; run: model-gateway ledger verify`,
          { cause },
        );
      } finally {
        isRunning = false;
      }
    },
  });
}
