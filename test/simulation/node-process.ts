import type { Slot } from '../../src/ledger/journal/slot.ts';
import type { MemoryDisk } from './memory-disk.ts';
import { lookupOf, type Request, serve } from './requests.ts';
import { type Actor, clockOf } from './scheduler.ts';
import { AIMED_LOSS, FRESH, type Step } from './steps.ts';
import { wayToStore } from './store-way.ts';
import type { SubjectNode } from './subject.ts';
import type { World } from './world.ts';

/** A computer with a disk, on which processes run one after another. */
export interface Machine {
  index: number;
  node: string;
  disk: MemoryDisk;
  process: NodeProcess | undefined;
  /** No message passes until then. */
  cut_until: number;
  skew_ms: number;
  /** How often it lost its power. */
  power_losses: number;
  /** Given up by an operator until it returns. */
  is_released: boolean;
}

/** Stops those who await it for good, as the end of a process does. */
const NEVER = new Promise<never>(() => {});

/** One process of a node. */
export class NodeProcess implements Actor {
  dead = false;
  paused_until = 0;
  /** It ended while the machine had power, so that its written data is there. */
  was_killed = false;
  #powerLossesBefore = 0;
  readonly machine: Machine;
  readonly requests = new Set<Request>();
  /** The actions of others when they find it gone. */
  readonly onEnd = new Set<() => void>();
  recorder: SubjectNode | undefined;
  draining = false;
  /** Everything in its journal is acknowledged: from here on the sums must be right. */
  is_settled = false;
  /** When it last could not reach the store. */
  disturbed_at: number;
  /** When the store's answer to a batch last arrived. */
  answered_at = Number.NEGATIVE_INFINITY;
  /** When the store last sent its time between batches. */
  store_time_at = Number.NEGATIVE_INFINITY;
  #atStep: Step | undefined = 'starting';
  readonly #world: World;

  constructor(world: World, machine: Machine) {
    this.#world = world;
    this.machine = machine;
    this.disturbed_at = world.scheduler.now_ms;
  }

  /** Starts, and serves until it ends. A start that fails ends the process. */
  async run(): Promise<void> {
    const world = this.#world;
    const { machine } = this;
    const slot: Slot = { index: 0, dir: `/machine-${machine.index}`, node: machine.node, release: () => {} };
    try {
      this.recorder = await world.subject.startNode(slot, {
        data_dir: '/',
        store: wayToStore(world, this),
        disk: machine.disk.of(this),
        clock: clockOf(world.scheduler, this, () => machine.skew_ms, world.random),
        log: world.log,
        journal_sync: world.plan.journal_sync,
        unknown_outcome: world.plan.unknown_outcome,
        ...(world.plan.lookups ? { lookup: lookupOf(world, this) } : {}),
      });
    } catch (error) {
      if (this.dead) return;
      world.counts.failed_starts++;
      if (!String(error).includes('the store does not answer')) world.fail('start', String(error));
      this.end();
      return;
    }
    this.#atStep = undefined;
    this.unsettled();
  }

  serve(request: Request): void {
    this.requests.add(request);
    void serve(this.#world, this, request).finally(() => {
      this.requests.delete(request);
      if (this.draining && this.requests.size === 0) void this.#stop();
    });
  }

  /** No message passes. */
  get isCutOff(): boolean {
    return this.machine.cut_until > this.#world.scheduler.now_ms;
  }

  /** Accepts no more requests, and stops when the last has ended. */
  drain(): void {
    if (this.recorder === undefined || this.draining) return;
    this.draining = true;
    this.#world.counts.drains++;
    if (this.requests.size === 0) void this.#stop();
  }

  async #stop(): Promise<void> {
    await this.enter(undefined, 'draining');
    await this.recorder?.stop();
    if (this.dead) return;
    this.end();
  }

  /** Notes the step of a request (or of the process itself). Does not return if the process ends at this step. */
  enter(request: Request | undefined, step: Step): Promise<void> {
    if (this.dead) return NEVER;
    if (request === undefined) this.#atStep = step;
    else request.step = step;
    this.#world.scheduler.note(step, request?.number ?? this.machine.index);
    if (!this.#world.isTrap(step)) return Promise.resolve();
    this.crash();
    return NEVER;
  }

  /** The answer to a batch has arrived. */
  answered(hadSettles: boolean): void {
    this.answered_at = this.#world.scheduler.now_ms;
    this.#atStep = undefined;
    if (hadSettles) {
      // The note of it is written a little later.
      this.#world.scheduler.after(0.0001, 'acknowledged', this, () => {
        void this.enter(undefined, 'batch acknowledged, not noted');
        this.#world.scheduler.after(0.1, 'noted', this, () => {
          if (this.#atStep === 'batch acknowledged, not noted') this.#atStep = undefined;
        });
      });
    }
  }

  /** Like `setImmediate`. */
  nextTurn(): Promise<void> {
    const delayMs = this.#world.random.between(0, 0.2);
    return new Promise((resolve) => void this.#world.scheduler.after(delayMs, 'turn', this, resolve));
  }

  disturbed(): void {
    // A pause that is still to end counts from there.
    this.disturbed_at = Math.max(this.disturbed_at, this.#world.scheduler.now_ms);
  }

  /** Registered (again): its batches in flight may be counted already until it has received the answer. */
  unsettled(): void {
    this.is_settled = false;
    this.disturbed();
    void this.recorder?.flush().then(() => {
      this.is_settled = true;
    });
  }

  pause(durationMs: number): void {
    const until = this.#world.scheduler.now_ms + durationMs;
    this.paused_until = Math.max(this.paused_until, until);
    this.disturbed_at = Math.max(this.disturbed_at, this.paused_until);
  }

  /** At once: no part of it runs any more. */
  crash(): void {
    if (this.dead) return;
    const world = this.#world;
    const steps = new Set([...this.requests].map(({ step }) => step));
    if (this.#atStep !== undefined) steps.add(this.#atStep);
    for (const step of steps) world.crashed_at.set(step, (world.crashed_at.get(step) ?? 0) + 1);
    world.counts.crashes++;
    world.counts.crashed_requests += this.requests.size;
    this.end();
    const { aim } = world.plan;
    const isAimed = aim !== undefined && steps.has(aim);
    const powerLoss = FRESH.some((step) => steps.has(step)) ? 0.6 : world.plan.power_loss;
    if (!world.random.chance(isAimed ? 1 : powerLoss)) {
      this.was_killed = true;
      return;
    }
    world.counts.power_losses++;
    this.machine.power_losses++;
    this.machine.disk.losePower(isAimed ? (AIMED_LOSS[aim] ?? 'all') : 'some');
  }

  /**
   * Whether all of its written data is there: neither its end nor a later power loss of its machine removed any of it.
   */
  get hasLeftAll(): boolean {
    return this.was_killed && this.machine.power_losses === this.#powerLossesBefore;
  }

  end(): void {
    this.dead = true;
    this.#powerLossesBefore = this.machine.power_losses;
    this.#world.watcher.ended(this);
    for (const onEnd of this.onEnd) onEnd();
    this.#world.ended(this);
  }
}
