import type { LedgerStore, SettleBatch } from '../../src/ledger/settle.ts';
import type { NodeProcess } from './node-process.ts';
import { LOSABLE_STEP, type Step } from './steps.ts';
import type { World } from './world.ts';

/** Delays and losses of messages. Probabilities, and milliseconds. */
export interface Weather {
  lost: number;
  answer_lost: number;
  repeated: number;
  typical_ms: number;
  most_ms: number;
}

export const STORM: Weather = { lost: 0.03, answer_lost: 0.04, repeated: 0.04, typical_ms: 4, most_ms: 400 };
export const CALM: Weather = { lost: 0, answer_lost: 0, repeated: 0, typical_ms: 3, most_ms: 12 };

/** A store without contact for this time counts as unreachable. */
const PATIENCE_MS = 1_500;

/** The store as one process reaches it: late, not at all, or without receiving the answer. */
export function wayToStore(world: World, process: NodeProcess): LedgerStore {
  const { scheduler, store, random } = world;

  /** A round trip: `run` is executed at the store, whatever happens to the process meanwhile. */
  function trip<T>(
    label: string,
    run: () => Promise<T>,
    repeats: boolean,
    onAnswer: () => void = () => {},
  ): Promise<T> {
    if (process.dead) return new Promise(() => {});
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const { weather } = world;
    const delay = () => random.longTailed(0.2, weather.typical_ms, weather.most_ms);
    const isCut = () => process.isCutOff;
    const lose = () => {
      process.disturbed();
      world.counts.lost++;
    };
    let isReceived = false;
    scheduler.after(PATIENCE_MS, `${label} given up`, process, () => {
      if (!isReceived) process.disturbed();
      reject(new Error('the store does not answer'));
    });
    const arrive = async (isLate: boolean) => {
      const outcome = await run().then(
        (answer) => () => resolve(answer),
        (error: unknown) => {
          world.fail('store', `${label}: ${String(error)}`);
          return () => reject(error as Error);
        },
      );
      if (isLate || process.dead) return;
      if (random.chance(weather.answer_lost) || isCut()) return lose();
      scheduler.after(delay(), `${label} answered`, process, () => {
        isReceived = true;
        onAnswer();
        outcome();
      });
    };
    if (random.chance(weather.lost) || isCut()) {
      lose();
      return promise;
    }
    const slow = delay();
    if (slow > 100) process.disturbed();
    scheduler.after(slow, label, undefined, () => void arrive(false));
    if (repeats && random.chance(weather.repeated)) {
      world.counts.repeated++;
      scheduler.after(slow + random.between(0, 3_000), `${label} again`, undefined, () => void arrive(true));
    }
    return promise;
  }

  /**
   * Whether a power loss now would remove an outcome that the store does not have, and no attempt whose money
   * compensates for it.
   */
  function stepOfGiving(): Step {
    const step = 'money given back, answer on its way';
    if (world.plan.aim !== LOSABLE_STEP) return step;
    const lines = process.machine.disk.unsynced().split('\n');
    const isStored = (line: string) => {
      const [, id = ''] = /"(gen-\d+)"/.exec(line) ?? [];
      return world.database.all('SELECT id FROM ledger_generations WHERE id = ?', id).length > 0;
    };
    const isOfKind = (kind: string) => (line: string) => line.includes(`{"t":"${kind}"`);
    const isAlone = !lines.some(isOfKind('A')) && !lines.filter(isOfKind('O')).every(isStored);
    return isAlone ? LOSABLE_STEP : step;
  }

  const clock = (at: number) => (world.plan.store_clock ? Math.floor(scheduler.now_ms) : at);

  return {
    position: (node) => trip('position', () => store.position(node), false),
    register: (registration) => {
      process.unsettled();
      return trip(
        'register',
        () => {
          world.watcher.storeChanges();
          return store.register({ ...registration, at: clock(registration.at) });
        },
        false,
      );
    },
    settle: (batch) => {
      // Messages are copies, which nobody changes afterwards.
      const text = JSON.stringify(batch);
      world.watcher.sends(batch, text);
      void process.enter(undefined, 'batch on its way');
      return trip(
        'settle',
        async () => {
          const arrived = JSON.parse(text) as SettleBatch;
          const answer = await world.watcher.applies(arrived, () =>
            store.settle({ ...arrived, at: clock(arrived.at) }),
          );
          const isGiving = arrived.windows.some(({ returned }) => returned > 0);
          if (answer.is === 'applied')
            void process.enter(undefined, isGiving ? stepOfGiving() : 'batch applied, answer on its way');
          if (answer.is === 'fenced') world.counts.fenced++;
          return answer;
        },
        true,
        () => process.answered(batch.settles.length > 0),
      );
    },
    watch: (node, at) =>
      trip(
        'watch',
        () => store.watch(node, clock(at)),
        false,
        () => {
          process.store_time_at = scheduler.now_ms;
        },
      ),
    keepAlive: (node, at) => trip('keepAlive', () => store.keepAlive(node, clock(at)), false),
    look: (windows) => trip('look', () => store.look(windows), false),
  };
}
