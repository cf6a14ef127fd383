import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import { Journal } from './journal.ts';
import { type LedgerLog, type LostAnswer, Pipe } from './pipe.ts';
import type { Recorder, RecorderOptions } from './recorder.ts';
import type { GenerationRecord } from './records.ts';
import { forgottenSince, lastAcknowledged, type Replay, replay } from './replay.ts';
import { Segments } from './segments.ts';
import { isBefore, type LedgerStore, type Position, type Settle, toSettle } from './settle.ts';
import type { Slot } from './slot.ts';

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

/** One node at work: its journal, its way to the store, and what is between them. */
class Node implements Recorder {
  readonly #slot: Slot;
  readonly #segments: Segments;
  readonly #journal: Journal;
  readonly #pipe: Pipe;
  readonly #store: LedgerStore;
  readonly #now: () => number;
  readonly #log: LedgerLog;
  readonly #unflushed = new Map<string, Settle>();
  readonly #sweeper: NodeJS.Timeout;
  #epoch: number;
  #sweeping: Promise<void> = Promise.resolve();
  #resends = 0;
  #resent: Promise<void> = Promise.resolve();

  constructor(slot: Slot, segments: Segments, epoch: number, options: RecorderOptions) {
    const { store, journal_sync, now, log } = options;
    this.#slot = slot;
    this.#segments = segments;
    this.#epoch = epoch;
    this.#store = store;
    this.#now = now;
    this.#log = log;
    this.#journal = new Journal({ segments, node: slot.node, epoch, boot: bootId(), sync: journal_sync, now });
    this.#pipe = new Pipe({
      store,
      node: slot.node,
      epoch,
      now,
      log,
      onApplied: (ids, batch) => this.#applied(ids, batch),
      onLost: (answer) => this.#registerAgain(answer),
    });
    this.#sweeper = setInterval(() => this.#lookAfter(), limits.journal_sweep_ms).unref();
  }

  /** Sends on what the slot's last owner left. */
  async replay(left: Replay): Promise<void> {
    for (const settle of left.outcomes) this.#queue(settle);
    await Promise.all(left.unknown.map((generation) => this.#record(generation)));
    if (this.#segments.owed) this.#resend(this.#segments.owed);
    this.#sweep();
  }

  attempt: Recorder['attempt'] = async ({ id, attempt, endpoint, record }) => {
    // A fallback of a request that was let in goes on.
    if (attempt === 1 && !this.#hasRoom()) throw refusal(new Error('too many outcomes wait for the store'));
    try {
      await this.#journal.attempt(id, JSON.stringify({ t: 'A', id, attempt, endpoint, at: this.#now(), record }));
    } catch (error) {
      this.#journal.abandon(id);
      throw refusal(error);
    }
  };

  progress: Recorder['progress'] = (id, usage) => this.#journal.note({ t: 'P', id, usage });

  outcome: Recorder['outcome'] = async (generation) => {
    try {
      await this.#record(generation);
    } catch (error) {
      this.#log.error({ err: error, generation: generation.id }, 'an outcome could not be written to the journal');
    }
  };

  find: Recorder['find'] = (id) => {
    const settle = this.#unflushed.get(id);
    return settle && (JSON.parse(settle.record) as GenerationRecord);
  };

  flush: Recorder['flush'] = () => this.#pipe.flush();

  state: Recorder['state'] = () => {
    const { unflushed, aside, oldest_at, batches, failing } = this.#pipe.state();
    return {
      node: this.#slot.node,
      epoch: this.#epoch,
      unflushed,
      refused: aside,
      oldest_unflushed_ms: oldest_at === undefined ? 0 : Math.max(0, this.#now() - oldest_at),
      admitting: this.admits(),
      store_failing: failing,
      journal_bytes: this.#segments.bytes,
      batches,
    };
  };

  admits: Recorder['admits'] = () => this.#hasRoom() && !this.#journal.failing;

  stop: Recorder['stop'] = async () => {
    clearInterval(this.#sweeper);
    const clean = await this.#pipe.stop();
    if (clean) this.#journal.note({ t: 'C' });
    else this.#log.warn({ unflushed: this.#unflushed.size }, 'stopping with outcomes that only the journal has');
    try {
      await this.#journal.close();
      this.#sweep();
      await this.#sweeping;
    } finally {
      this.#slot.release();
    }
  };

  /** Resolves when nothing is being sent again. */
  get resent(): Promise<void> {
    return this.#resent;
  }

  #hasRoom(): boolean {
    return this.#unflushed.size < limits.journal_unflushed_records_max;
  }

  #queue(settle: Settle): void {
    this.#unflushed.set(settle.id, settle);
    this.#pipe.push(settle);
  }

  #record(generation: GenerationRecord): Promise<void> {
    if (this.#unflushed.has(generation.id)) return Promise.resolve();
    const text = JSON.stringify(generation);
    const settle = toSettle(generation, text);
    const line = `{"t":"O","id":${JSON.stringify(generation.id)},"record":${text}}`;
    const written = this.#journal.outcome(generation.id, line);
    this.#queue(settle);
    return written;
  }

  #applied(ids: readonly string[], batch: number): void {
    this.#journal.note({ t: 'F', ids: [...ids], batch });
    for (const id of ids) this.#unflushed.delete(id);
    this.#sweep();
  }

  async #registerAgain(answer: LostAnswer): Promise<{ epoch: number }> {
    const node = this.#slot.node;
    this.#log.warn({ answer, node, epoch: this.#epoch }, 'the store is out of step with this node; registering again');
    // Written down first: once the node is registered again, nothing else tells what the store forgot.
    if (answer.is === 'behind') owe(this.#segments, answer);
    const { epoch } = await register(this.#store, this.#slot, { epoch_seen: this.#epoch, at: this.#now() });
    this.#epoch = epoch;
    this.#journal.beginEpoch(epoch);
    if (answer.is === 'behind' && this.#segments.owed) this.#resend(this.#segments.owed);
    return { epoch };
  }

  /** Sends everything that the store may have forgotten, a segment at a time, while the node serves. */
  #resend(position: Position): void {
    const resend = ++this.#resends;
    const run = async () => {
      for await (const forgotten of forgottenSince(this.#segments, position)) {
        if (resend !== this.#resends) return;
        for (const settle of forgotten) if (!this.#unflushed.has(settle.id)) this.#queue(settle);
        await this.#pipe.flush();
      }
      if (resend !== this.#resends || this.#pipe.state().aside > 0) return;
      this.#segments.owePaid();
      this.#log.info({ node: this.#slot.node }, 'the store has again what it had forgotten');
    };
    this.#log.warn({ node: this.#slot.node, position }, 'the store is older than the journal; sending what it forgot');
    this.#resent = run().catch((error: unknown) =>
      this.#log.error({ err: error }, 'what the store forgot could not all be sent; the next start tries again'),
    );
  }

  #sweep(): void {
    this.#sweeping = this.#sweeping
      .then(() => this.#segments.sweep(this.#now()))
      .catch((error: unknown) => this.#log.error({ err: error }, 'settled journal segments could not be put away'));
  }

  #lookAfter(): void {
    this.#pipe.retryAside();
    this.#sweeping = this.#sweeping.then(async () => {
      try {
        this.#journal.lookAfter();
        const late = this.#segments.oldestOpen(this.#now() - limits.journal_carry_ms);
        if (late) await this.#journal.carry(late);
      } catch (error) {
        this.#log.error({ err: error }, 'the journal needs attention');
      }
    });
    this.#sweep();
  }
}

/** Raises the node's epoch above the store's and the journal's. */
function register(store: LedgerStore, slot: Slot, { epoch_seen, at }: { epoch_seen: number; at: number }) {
  return store.register({ node: slot.node, instance: randomUUID(), epoch_seen, at });
}

/** Notes what the store forgot; what it was owed before is owed still. */
function owe(segments: Segments, { epoch, batch }: Position): void {
  const position = { epoch, batch };
  if (segments.owed === undefined || isBefore(position, segments.owed)) segments.owe(position);
}

/**
 * Replays what the slot's last owner left, under a new epoch, and records from then on. A store that knows less than the
 * journal saw acknowledged was restored from a backup: it gets again what it forgot.
 */
export async function startNode(slot: Slot, options: RecorderOptions): Promise<Node> {
  const { store, now, log } = options;
  const segments = new Segments(slot.dir, (file, at) =>
    log.error({ file, at }, 'a kept journal segment is damaged; what can be read of it is used'),
  );
  const left = replay(segments);
  const stored = await store.position(slot.node);
  if (isBefore(stored, await lastAcknowledged(segments))) owe(segments, stored);
  const { epoch } = await register(store, slot, { epoch_seen: segments.epoch, at: now() });
  const node = new Node(slot, segments, epoch, options);
  try {
    await node.replay(left);
    return node;
  } catch (error) {
    await node.stop();
    throw error;
  }
}
