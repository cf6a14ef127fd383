import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../limits.ts';
import { nodeDisk } from './journal/disk.ts';
import { lackingBytes } from './journal/retention.ts';
import { needsReplay } from './journal/segment.ts';
import { Segments } from './journal/segments.ts';
import { otherSlots, type Slot, slotDir, takeFirstSlot, takeSlot } from './journal/slot.ts';
import type { Timer } from './ledger-clock.ts';
import type { Recorder, RecorderOptions } from './recorder.ts';
import { startNode } from './start-node.ts';

/** The interval of searches for slots of gateways that died. */
export const SLOTS_LOOK_MS = 5_000;

/**
 * Replays the slots of gateways that died: their outcomes go to the store, their leases are returned, and the slots are free
 * again. Runs as long as this gateway, since a gateway may die in a slot that no later one takes.
 */
class Adopter {
  readonly #own: Slot;
  readonly #options: RecorderOptions;
  readonly #timer: Timer;
  #adopting: Promise<void> | undefined;
  /** The last error that was logged for each slot, or for the search for slots: each is logged once. */
  readonly #logged = new Map<number | 'all', string>();

  constructor(own: Slot, options: RecorderOptions) {
    this.#own = own;
    this.#options = options;
    this.#start(() => true);
    this.#timer = options.clock.setInterval(() => {
      if (this.#adopting !== undefined) return;
      // The archived segments of stopped gateways make room as well.
      const isShort = lackingBytes(options.disk ?? nodeDisk, own.dir) > 0;
      this.#start(isShort ? () => true : needsReplay);
    }, SLOTS_LOOK_MS);
  }

  /** Adopts once more, so that a clean stop leaves nothing of gateways that died before it. */
  async stop(): Promise<void> {
    this.#options.clock.clearInterval(this.#timer);
    await this.#adopting;
    this.#start(needsReplay);
    await this.#adopting;
  }

  /** Adopts the slots for which `isWanted(dir)`. Others are not touched: a gateway that starts meanwhile would find them taken. */
  #start(isWanted: (dir: string) => boolean): void {
    this.#adopting = this.#adoptAll(isWanted).finally(() => {
      this.#adopting = undefined;
    });
  }

  async #adoptAll(isWanted: (dir: string) => boolean): Promise<void> {
    const { data_dir } = this.#options;
    for (const index of this.#others()) {
      let slot: Slot | undefined;
      try {
        if (!isWanted(slotDir(data_dir, index))) continue;
        slot = takeSlot(data_dir, index);
        if (slot !== undefined) await adopt(slot, this.#options);
        this.#logged.delete(index);
      } catch (error) {
        slot?.release();
        this.#logOnce(index, error, 'the journal of a stopped gateway could not be replayed');
      }
    }
  }

  /** None if the folder cannot be read, for example without a free file descriptor; the next run tries again. */
  #others(): number[] {
    try {
      const others = otherSlots(this.#options.data_dir, this.#own.index);
      this.#logged.delete('all');
      return others;
    } catch (error) {
      this.#logOnce('all', error, 'the journals of stopped gateways could not be searched');
      return [];
    }
  }

  #logOnce(slot: number | 'all', error: unknown, message: string): void {
    if (this.#logged.get(slot) === String(error)) return;
    this.#logged.set(slot, String(error));
    this.#options.log.error({ err: error, slot }, message);
  }
}

async function adopt(slot: Slot, options: RecorderOptions): Promise<void> {
  if (!needsReplay(slot.dir)) {
    // No gateway runs in this slot to delete its archived segments.
    const segments = new Segments(slot.dir, { disk: options.disk, keep: options.journal_keep });
    await segments.sweep({ now: options.clock.now() }, () => Promise.resolve());
    await segments.retention.makeRoom();
    slot.release();
    return;
  }
  options.log.info({ slot: slot.index, node: slot.node }, 'replaying the journal of a process that ended');
  const node = await startNode(slot, options);
  await Promise.race([node.resent, sleep(limits.flush_stop_ms_max, undefined, { ref: false })]);
  await node.stop();
}

/**
 * Takes a free slot of the data directory, replays what its last owner left, and records from then on. The holder of the
 * first slot also replays slots that no process holds. Rejects if all slots are taken, if a journal is damaged (the message
 * names the file), or if the store does not answer.
 */
export async function startRecorder(options: RecorderOptions): Promise<Recorder> {
  const slot = takeFirstSlot(options.data_dir);
  try {
    const recorder = await startNode(slot, options);
    if (slot.index !== 0) return recorder;
    const adopter = new Adopter(slot, options);
    return {
      ...recorder,
      stop: async () => {
        await adopter.stop();
        await recorder.stop();
      },
    };
  } catch (error) {
    slot.release();
    throw error;
  }
}
