import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { TokenClasses } from '../schemas/inner.ts';
import { Journal, type JournalSync } from './journal.ts';
import { type LedgerLog, Pipe } from './pipe.ts';
import type { GenerationRecord } from './records.ts';
import { forgottenBy, replay } from './replay.ts';
import { Segments } from './segments.ts';
import { type LedgerStore, type Settle, toSettle } from './settle.ts';
import { otherSlots, type Slot, takeFirstSlot, takeSlot } from './slot.ts';

export interface RecorderOptions {
  data_dir: string;
  store: LedgerStore;
  journal_sync: JournalSync;
  now: () => number;
  log: LedgerLog;
}

interface RecorderState {
  node: string;
  epoch: number;
  /** Outcomes that the store has not acknowledged. */
  unflushed: number;
  /** Age of the oldest of them; 0 when there is none. */
  oldest_unflushed_ms: number;
  /** False: a first attempt that comes now is refused. */
  admitting: boolean;
  /** Whether the last try to reach the store failed. */
  store_failing: boolean;
  /** What the journal takes on the disk, settled segments included. */
  journal_bytes: number;
  /** Batches that the store acknowledged. */
  batches: number;
}

/** What the inference flow tells about a call: before the send, on the way, at the end. */
export interface Recorder {
  /**
   * Resolves when the attempt is durable: only then may bytes go upstream. Rejects with a 503 for the client when it
   * cannot be written, or when too many outcomes wait for the store and this is the first attempt of its request.
   */
  attempt(attempt: { id: string; attempt: number; endpoint: string; record: GenerationRecord }): Promise<void>;
  /** A better estimate, should the end never be told. Never waited for. */
  progress(id: string, usage: TokenClasses): void;
  /**
   * Resolves when the outcome is in the journal, before the client is told the end; from the call on it is queued for
   * the store, once per id, and `find` knows it. Never rejects: where the journal fails it is logged, and the store
   * still gets the outcome.
   */
  outcome(record: GenerationRecord): Promise<void>;
  /** A generation that the store does not have yet. */
  find(id: string): GenerationRecord | undefined;
  /** Resolves when everything recorded so far is in the store. */
  flush(): Promise<void>;
  state(): RecorderState;
  /** Flushes, closes the journal, gives the slot back. What the store does not take stays in the journal. */
  stop(): Promise<void>;
}

/** Names the machine's run, so that a start can tell a power loss from a crash. Empty where the system has no such id. */
function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}

function refusal(cause: unknown): GatewayError {
  return new GatewayError(503, 'The gateway cannot record requests at the moment; try again soon', {
    headers: { 'retry-after': '1' },
    cause,
  });
}

async function startNode(slot: Slot, options: RecorderOptions): Promise<Recorder> {
  const { store, journal_sync, now, log } = options;
  const segments = new Segments(slot.dir);
  const left = replay(segments);
  const register = (epoch_seen: number) =>
    store.register({ node: slot.node, instance: randomUUID(), epoch_seen, at: now() });
  const registered = await register(segments.epoch);
  let { epoch } = registered;
  const journal = new Journal({ segments, node: slot.node, epoch, boot: bootId(), sync: journal_sync, now });
  const unflushed = new Map<string, Settle>();
  let sweeping: Promise<void> = Promise.resolve();

  const sweep = () => {
    sweeping = sweeping
      .then(() => segments.sweep(now()))
      .catch((error: unknown) => log.error({ err: error }, 'settled journal segments could not be put away'));
  };
  const pipe = new Pipe({
    store,
    node: slot.node,
    epoch,
    now,
    log,
    onApplied: (ids, batch) => {
      journal.note({ t: 'F', ids: [...ids], batch });
      for (const id of ids) unflushed.delete(id);
      sweep();
    },
    onLost: async (answer) => {
      log.warn({ answer, node: slot.node, epoch }, 'the store knows this node differently; registering again');
      const forgotten = answer.is === 'behind' ? forgottenBy(segments, answer) : [];
      const again = await register(epoch);
      epoch = again.epoch;
      journal.beginEpoch(epoch);
      return { epoch, again: forgotten };
    },
  });
  const queue = (settle: Settle) => {
    unflushed.set(settle.id, settle);
    pipe.push(settle);
  };
  const record = (generation: GenerationRecord): Promise<void> => {
    if (unflushed.has(generation.id)) return Promise.resolve();
    const text = JSON.stringify(generation);
    const settle = toSettle(generation, text);
    const written = journal.outcome(generation.id, `{"t":"O","id":${JSON.stringify(generation.id)},"record":${text}}`);
    queue(settle);
    return written;
  };

  const hasRoom = () => unflushed.size < limits.journal_unflushed_records_max;

  for (const settle of left.outcomes) queue(settle);
  await Promise.all(left.unknown.map(record));
  if (registered.stored_epoch < epoch - 1) {
    log.warn({ node: slot.node }, 'the store is older than the journal; sending again what it may have forgotten');
    for (const settle of forgottenBy(segments, { epoch: registered.stored_epoch, batch: 0 })) {
      if (!unflushed.has(settle.id)) queue(settle);
    }
  }
  sweep();

  return {
    attempt: async ({ id, attempt, endpoint, record: attempted }) => {
      // A fallback of a request that was let in goes on.
      if (attempt === 1 && !hasRoom()) throw refusal(new Error('too many outcomes wait for the store'));
      try {
        await journal.attempt(id, JSON.stringify({ t: 'A', id, attempt, endpoint, at: now(), record: attempted }));
      } catch (error) {
        journal.abandon(id);
        throw refusal(error);
      }
    },
    progress: (id, usage) => journal.note({ t: 'P', id, usage }),
    outcome: async (generation) => {
      try {
        await record(generation);
      } catch (error) {
        log.error({ err: error, generation: generation.id }, 'an outcome could not be written to the journal');
      }
    },
    find: (id) => {
      const settle = unflushed.get(id);
      return settle && (JSON.parse(settle.record) as GenerationRecord);
    },
    flush: () => pipe.flush(),
    state: () => {
      const { unflushed: waiting, oldest_at, batches, failing } = pipe.state();
      return {
        node: slot.node,
        epoch,
        unflushed: waiting,
        oldest_unflushed_ms: oldest_at === undefined ? 0 : Math.max(0, now() - oldest_at),
        admitting: hasRoom() && !journal.dead,
        store_failing: failing,
        journal_bytes: segments.bytes,
        batches,
      };
    },
    stop: async () => {
      const clean = await pipe.stop();
      if (clean) journal.note({ t: 'C' });
      else log.warn({ unflushed: unflushed.size }, 'stopping with outcomes that only the journal has');
      await journal.close();
      sweep();
      await sweeping;
      slot.release();
    },
  };
}

/** Slots that nobody came back for: their outcomes go to the store, and the slots are free again. */
async function adoptAbandoned(own: Slot, options: RecorderOptions): Promise<void> {
  for (const index of otherSlots(options.data_dir, own.index)) {
    const slot = takeSlot(options.data_dir, index);
    if (!slot) continue;
    if (new Segments(slot.dir).list.every(({ settled }) => settled)) {
      slot.release();
      continue;
    }
    options.log.info({ slot: index, node: slot.node }, 'replaying the journal of a gateway that is gone');
    const recorder = await startNode(slot, options).catch((error: unknown) => {
      slot.release();
      throw error;
    });
    await recorder.stop();
  }
}

/**
 * Takes a free slot of the data directory, replays what its last owner left, and records from then on. Fails with a
 * message where a journal is damaged. The holder of the first slot also replays slots that nobody took.
 */
export async function startRecorder(options: RecorderOptions): Promise<Recorder> {
  const slot = takeFirstSlot(options.data_dir);
  try {
    const recorder = await startNode(slot, options);
    if (slot.index !== 0) return recorder;
    const adopting = adoptAbandoned(slot, options).catch((error: unknown) =>
      options.log.error({ err: error }, 'the journal of a gateway that is gone could not be replayed'),
    );
    return {
      ...recorder,
      stop: async () => {
        await adopting;
        await recorder.stop();
      },
    };
  } catch (error) {
    slot.release();
    throw error;
  }
}
