import type { AttemptLine } from '../../src/ledger/journal/attempt-line.ts';
import type { Hold, HoldRequest } from '../../src/ledger/leases/hold.ts';
import { freeOf } from '../../src/ledger/leases/lease-book.ts';
import type { Lookup } from '../../src/ledger/lookup.ts';
import type { AttemptRecord, GenerationRecord } from '../../src/ledger/records.ts';
import type { Budget, BudgetMode } from '../../src/schemas/budget.ts';
import { generation } from '../generation-fixture.ts';
import type { NodeProcess } from './node-process.ts';
import { LAST_MONEY_STEP, SLICED_STEP, type Step, UNSAFE_STEP } from './steps.ts';
import type { SentAttempt } from './upstream.ts';
import type { World } from './world.ts';

/** One client's call and its result. */
export interface Request {
  number: number;
  id: string;
  budgets: readonly Budget[];
  mode: BudgetMode;
  /** The node that serves it. */
  process: NodeProcess;
  /** The lowest cost of one of its attempts if nothing is held: its prompt. */
  least_nano: number;
  step: Step;
  requested_at: number;
  /** The node that sent each attempt. */
  sent: (SentAttempt | undefined)[];
  /** The metered amount of its first attempt, and whether the journal certainly has it. */
  metered: { nano: number; is_written: boolean }[];
  /** The number of attempts that it began. */
  attempts: number;
  /** The gateway does not know the end of some attempt. */
  has_unknown: boolean;
  /** Recorded by a gateway that survived. */
  is_reported: boolean;
}

/** The journal writes its collected records in the next turn, which begins before this time. */
const WRITTEN_MS = 0.1;

/** A lease with at most this amount counts as used up. */
const LAST_NANO = 1_000;

interface Answer {
  is: 'complete' | 'refused' | 'broken';
  cost_nano: number;
}

/** The windows in which an attempt counts: those of its budgets, fixed at its admission. */
function windowsOf(world: World, { number }: Request, { budgets, is_byok }: HoldRequest, { lines }: Hold): string[] {
  return budgets.flatMap(({ id, include_byok }) => {
    if (is_byok && !include_byok) return [];
    const line = lines.find(({ budget }) => budget.id === id);
    if (line === undefined) world.fail('Q6', `request ${number} holds nothing of ${id}`);
    return line === undefined ? [] : [`${id} ${line.window_start}`];
  });
}

function metered(world: World, process: NodeProcess, request: Request, nano: number): void {
  const { disk } = process.machine;
  const fullBefore = disk.full;
  process.recorder?.progress(request.id, { out_text: 1 }, nano);
  if (request.attempts !== 1) return;
  const progress = { nano, is_written: false };
  request.metered.push(progress);
  // The journal writes it before that, unless the disk is full: nobody waits for it, so it is not written again.
  world.scheduler.after(WRITTEN_MS, 'progress written', process, () => {
    progress.is_written = disk.full === fullBefore;
  });
}

/** The answer of a provider that is queried about an attempt: its outcome once it is known, otherwise nothing. */
export function lookupOf(world: World, process: NodeProcess): Lookup {
  const { scheduler, random, requests } = world;
  return ({ id, number }) => {
    const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<Lookup>>>();
    if (random.chance(0.05)) return promise;
    scheduler.after(random.longTailed(1, 60, 400), 'provider asked', process, () => {
      const sent = requests.find((request) => request.id === id)?.sent[number - 1];
      const isKnown = sent === undefined || sent.billed_nano !== undefined;
      if (random.chance(0.1)) reject(new Error('the provider does not answer'));
      else if (!isKnown || random.chance(0.2)) resolve(undefined);
      else {
        world.counts.found_out++;
        const costNano = sent?.billed_nano ?? 0;
        resolve({
          usage: costNano === 0 ? null : { out_text: 1 },
          cost_nano: costNano,
          charges: [],
          upstream_id: null,
        });
      }
    });
    return promise;
  };
}

/** Whether a power loss now would lose the attempt, or money that it received; checked if a run is aimed at it. */
function stepOfSending(
  { plan }: World,
  { machine, isCutOff }: NodeProcess,
  { id, attempts }: Request,
  { lines }: Hold,
): Step {
  const isLast = () => isCutOff && lines.some(({ lease }) => freeOf(lease) < LAST_NANO);
  if (plan.aim === LAST_MONEY_STEP) return isLast() ? LAST_MONEY_STEP : 'sent';
  if (plan.aim !== UNSAFE_STEP) return 'sent';
  const isIts = (line: string) => {
    const at = line.indexOf('{"t":"A"');
    if (at === -1) return false;
    const [calls, , , attempt] = (JSON.parse(line.slice(at)) as AttemptLine).v;
    return calls === id && attempt === attempts;
  };
  return machine.disk.unsynced().split('\n').some(isIts) ? UNSAFE_STEP : 'sent';
}

/** Sends one attempt and waits for its result. The provider continues independently of the gateway. */
function send(world: World, process: NodeProcess, request: Request, ask: HoldRequest, hold: Hold): Promise<Answer> {
  const { scheduler, random, upstream, plan } = world;
  const windows = windowsOf(world, request, ask, hold);
  const isLimited = request.budgets.length > 0;
  const bound = isLimited ? hold.granted_nano : 10 * request.least_nano;
  const sent = upstream.send(windows, bound);
  request.sent[request.attempts - 1] = sent;
  const { promise, resolve } = Promise.withResolvers<Answer>();
  let isOver = false;
  const answer = (delayMs: number, content: Answer) =>
    scheduler.after(delayMs, 'upstream answered', process, () => {
      isOver = true;
      resolve(content);
    });
  const way = random.longTailed(0.5, 15, 60);
  if (random.chance(0.03)) {
    scheduler.after(way, 'lost on the way up', undefined, () => upstream.bill(sent, 0));
    answer(random.between(50, 3_000), { is: 'broken', cost_nano: 0 });
    return promise;
  }
  if (random.chance(0.1)) {
    scheduler.after(way, 'refused upstream', undefined, () => upstream.bill(sent, 0));
    answer(2 * way, { is: 'refused', cost_nano: 0 });
    return promise;
  }
  const isFirst = request.attempts === 1;
  const usualMs = random.longTailed(20, 1_500, 12_000);
  const lengthMs = plan.retries ? (isFirst ? usualMs / 5 : 2_000 + usualMs) : usualMs;
  scheduler.after(way, 'arrived upstream', undefined, () => {
    if (!process.dead && request.step.startsWith('sent')) void process.enter(request, 'upstream at work');
  });
  const share = random.chance(0.25) ? 1 : random.next();
  const overrun = plan.overruns && request.mode === 'soft' && random.chance(0.2) ? random.between(1, 1.3) : share;
  const total = Math.max(
    request.least_nano,
    1,
    Math.floor(bound * (plan.mode === 'sliced' ? random.between(0.2, 5) : overrun)),
  );
  const breaks = random.chance(plan.retries && isFirst ? 1 : 0.08);
  if (plan.mode === 'sliced' && isLimited) {
    void stream(world, process, request, { hold, sent, total, breaks }).then(resolve);
    return promise;
  }
  scheduler.after(way + lengthMs, 'billed', undefined, () => upstream.bill(sent, total));
  if (random.chance(0.3)) {
    scheduler.after(way + lengthMs / 2, 'metered', process, () => {
      if (!isOver) metered(world, process, request, Math.max(request.least_nano, Math.floor(total / 2)));
    });
  }
  const content: Answer = breaks ? { is: 'broken', cost_nano: 0 } : { is: 'complete', cost_nano: total };
  answer(way + (breaks ? random.between(0, lengthMs) : lengthMs) + random.between(0.5, 20), content);
  return promise;
}

/** A stream that continues as long as its hold can be extended. The provider sends no more than requested. */
async function stream(
  world: World,
  process: NodeProcess,
  request: Request,
  { hold, sent, total, breaks }: { hold: Hold; sent: SentAttempt; total: number; breaks: boolean },
): Promise<Answer> {
  const { scheduler, random, upstream } = world;
  const slice = sent.bound_nano;
  const onEnd = () => upstream.bill(sent, Math.min(total, random.whole(0, sent.bound_nano)));
  process.onEnd.add(onEnd);
  const wait = () =>
    new Promise<void>((resolve) => void scheduler.after(random.between(20, 300), 'streamed', process, resolve));
  await wait();
  while (total > hold.granted_nano) {
    if (breaks && random.chance(0.3)) break;
    const extended = process.recorder?.extend(hold, hold.granted_nano + slice);
    await process.enter(request, SLICED_STEP);
    if ((await extended) !== true) break;
    await process.enter(request, 'upstream at work');
    upstream.allow(sent, hold.granted_nano);
    if (random.chance(0.3)) metered(world, process, request, Math.floor(sent.bound_nano / 2));
    await wait();
  }
  process.onEnd.delete(onEnd);
  const costNano = Math.min(total, sent.bound_nano);
  upstream.bill(sent, costNano);
  return breaks ? { is: 'broken', cost_nano: 0 } : { is: 'complete', cost_nano: costNano };
}

function attemptRecord(costNano: number, isByok: boolean, failure: string | null): AttemptRecord {
  const endpoint = { endpoint_id: 'acme|acme/fast-1', provider_name: 'Acme AI', model_permaslug: 'acme/fast-1' };
  return {
    ...endpoint,
    status: failure === null ? 200 : null,
    latency: 1,
    is_byok: isByok,
    upstream_id: null,
    failure,
    cost_nano: costNano,
  };
}

/** The calls of the gateway's flow to the ledger, in the same order. */
export async function serve(world: World, process: NodeProcess, request: Request): Promise<void> {
  const { random } = world;
  const { recorder } = process;
  if (recorder === undefined) return;
  const attempts: AttemptRecord[] = [];
  const at = Math.floor(world.scheduler.now_ms + process.machine.skew_ms);
  const createdAt = new Date(at).toISOString();
  const recordOf = (outcome: GenerationRecord['outcome'], isByok: boolean): GenerationRecord => {
    const sum = (byok: boolean) => attempts.reduce((all, one) => all + (one.is_byok === byok ? one.cost_nano : 0), 0);
    const costs = { cost_nano: sum(false), byok_cost_nano: sum(true), upstream_cost_nano: sum(false) + sum(true) };
    const facts = {
      id: request.id,
      outcome,
      is_byok: isByok,
      created_at: createdAt,
      attempts: [...attempts],
      charges: [],
      ...costs,
    };
    return generation({ ...facts, usage: outcome === 'unknown' ? null : { in_uncached: 1, out_text: 1 } });
  };
  const isLimited = request.budgets.length > 0;
  const ask = (): HoldRequest => {
    const fullNano = random.whole(500, 12_000);
    const leastNano = random.chance(0.6) ? fullNano : random.whole(200, fullNano);
    const { id, budgets, mode } = request;
    const isByok = isLimited && random.chance(0.15);
    return { id, at, budgets, mode, is_byok: isByok, full_nano: fullNano, least_nano: leastNano };
  };
  const least = isLimited ? undefined : { usage: { in_uncached: 1 }, cost_nano: request.least_nano };
  const unheld: Hold = { id: request.id, lines: [], granted_nano: 0 };

  let currentAsk = ask();
  await process.enter(request, 'asked');
  let hold: Hold;
  try {
    hold = isLimited ? await recorder.reserve(currentAsk) : unheld;
  } catch (error) {
    world.watcher.refused(process, request, currentAsk, error);
    return;
  }
  world.counts.admitted++;
  world.watcher.admitted(request, currentAsk, hold);
  await process.enter(request, 'held');
  if (random.chance(0.03)) return recorder.release(hold);
  let outcome: GenerationRecord['outcome'] = 'failed';
  for (let attempt = 1; ; attempt++) {
    const { is_byok } = currentAsk;
    request.attempts = attempt;
    const record = recordOf('unknown', is_byok);
    const written = recorder.attempt({ id: request.id, attempt, endpoint: 'acme|acme/fast-1', record, hold, least });
    try {
      await process.enter(request, 'attempt being written');
      await written;
    } catch {
      world.counts.refused_by_journal++;
      if (attempt === 1) return;
      break;
    }
    await process.enter(request, 'attempt durable');
    if (random.chance(0.5)) await process.nextTurn();
    const answered = send(world, process, request, currentAsk, hold);
    await process.enter(request, stepOfSending(world, process, request, hold));
    const answer = await answered;
    await process.enter(request, 'answered');
    if (answer.is === 'complete') {
      attempts.push(attemptRecord(answer.cost_nano, is_byok, null));
      outcome = 'completed';
      break;
    }
    const mayCost = answer.is === 'broken' ? Math.max(hold.granted_nano, request.least_nano) : 0;
    if (answer.is === 'broken') request.has_unknown = true;
    attempts.push(attemptRecord(mayCost, is_byok, 'the connection broke'));
    if (mayCost > 0) recorder.keep(hold, mayCost, is_byok);
    if (attempt === 3 || random.chance(0.4)) break;
    currentAsk = ask();
    try {
      const reserved = isLimited ? recorder.reserve(currentAsk, hold) : hold;
      await process.enter(request, 'first attempt failed, next asked');
      hold = await reserved;
    } catch (error) {
      world.watcher.refusedAgain(error);
      break;
    }
  }
  const record = recordOf(outcome, currentAsk.is_byok);
  world.scheduler.note('recorded', record.cost_nano);
  const written = recorder.outcome(record, hold);
  await process.enter(request, 'outcome being written');
  await written;
  await process.enter(request, 'outcome written, client not informed');
  await process.nextTurn();
  request.is_reported = true;
  await process.enter(request, 'client informed');
  await process.nextTurn();
}
