import { limits } from '../../limits.ts';
import type { ChatDialect, Media, MediaNeed } from '../../providers/dialect.ts';
import type { MediaFetcher } from '../../providers/transport/fetch-media.ts';
import type { Upstream } from '../../providers/transport/upstream.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { ChatRequest, TokenClasses, Wire } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { answerLevels } from '../../schemas/json-structure.ts';
import type { Attempts } from '../attempt/attempts.ts';
import {
  type AuthAndErrors,
  CallCancelled,
  headersOf,
  type Outgoing,
  outcomeOfWhole,
  readJson,
  start,
} from '../attempt/exchange.ts';
import type { Call, Clock } from '../call.ts';
import type { Measure, Prepared } from '../money/admission.ts';
import { believable } from '../money/meter.ts';
import type { AnswerUsage, Settlement } from '../money/settlement.ts';
import { type Planner, type Wanted, wireOf } from '../plan/planner.ts';
import { createCallMedia, NO_MEDIA } from '../prepare/media.ts';
import { type Account, type AnswerWatch, type Attempt, servedBy } from '../state.ts';

/** One request of a task's attempt. Where it goes and whose credential it shows is the flow's. */
export interface Request extends Pick<Outgoing, 'path' | 'headers' | 'payload'> {
  /** Where the wire of the operation shows its credential or tells its errors in another way than the provider's chat. */
  manners?: AuthAndErrors;
  /** Default: POST. */
  method?: 'GET';
  /** Values of its answer at most. Absent: those of a chat. */
  values_max?: number;
}

/** The way of one attempt to its provider. */
export interface Line {
  /** Sends one request and reads its answer as JSON. Throws `UpstreamError`, or `CallCancelled`. Several may be under way at once. */
  ask(request: Request): Promise<{ body: JsonValue; headers: Record<string, string | string[] | undefined> }>;
  /**
   * Told what each answer used as soon as it is there, so that it is charged whatever becomes of the rest. Counts that no
   * answer can have are not believed: false is returned, and the caller counts itself.
   */
  bill(usage: TokenClasses, upstream_id?: string): boolean;
  /** The client has left: nothing more should be begun. */
  isCancelled(): boolean;
}

/** What the client of a call that is not chat wrote. */
export interface Words<P extends Prepared, A> {
  /** By its own names of the fields. */
  said: JsonObject;
  /** A field of them that no filter can read, as it is no text. Absent: all can be. */
  unreadable?: string | undefined;
  /** The same task with other words, and its request as the flow reads it. */
  retold(said: JsonObject): { task: Task<P, A>; request: ChatRequest };
}

/** A kind of call that is not chat: what is peculiar to it. Everything else is the flow's, as for chat. */
export interface Task<P extends Prepared, A> extends Wanted {
  /** What filters of content look at. */
  words(): Words<P, A>;
  /** What must be fetched before it can be encoded for an endpoint, and the field of the body that names it. Absent: nothing. */
  media?: { place: string; needs(candidate: Candidate): MediaNeed[] };
  /** Encodes for one endpoint; a promise where that takes long. Throws `GatewayError` 400 for what its wire cannot carry: another's may. */
  prepare(candidate: Candidate, media: Media): P | Promise<P>;
  /** What it may cost. */
  measure: Measure<P>;
  /**
   * Asks the endpoint, with one request or several, and bills each. When it throws, nothing of it may still be under way: what was
   * billed until then is charged, and the next endpoint begins anew.
   */
  send(prepared: P, line: Line): Promise<A>;
  /** The answer with its texts as `shown` gives them back; those of one call of it are read as one. Absent: it is no text. */
  retell?(answer: A, shown: (texts: readonly string[]) => string[]): A;
}

/** What came of a task. */
export interface TaskAnswer<A> {
  answer: A;
  served: { model: string; provider: string };
  usage: AnswerUsage;
  /** What was billed, over all its requests. */
  classes: TokenClasses;
  metadata: Record<string, unknown> | undefined;
}

/** Adds up what the answers of one attempt used. */
class Tally implements Account {
  finish_reason = null;
  native_finish_reason = null;
  service_tier = null;
  upstream_id: string | null = null;
  #sum: TokenClasses | null = null;

  add(usage: TokenClasses, upstream_id: string | undefined): boolean {
    if (believable(usage) === undefined) return false;
    this.upstream_id ??= upstream_id ?? null;
    const { counts: _counts, extra: _extra, estimated, ...classes } = usage;
    const sum: TokenClasses = { ...this.#sum };
    for (const [name, count] of Object.entries(classes) as [keyof typeof classes, number][]) {
      sum[name] = (sum[name] ?? 0) + count;
    }
    if (estimated) sum.estimated = true;
    this.#sum = sum;
    return true;
  }

  usage(): TokenClasses | null {
    return this.#sum;
  }
}

/** What a task needs of the flow. */
interface Surroundings
  extends Pick<Planner, 'open' | 'giveUp' | 'metadataOf'>,
    Pick<Attempts, 'tryEach'>,
    Pick<Settlement, 'settle'> {
  dialect(wire: Wire): ChatDialect | undefined;
  upstream: Upstream;
  media: MediaFetcher;
  clock: Clock;
  first_token_ms_max: number;
  total_ms_max: number;
  watch: AnswerWatch | undefined;
}

/** Takes a task through the steps of every call: plan, money, journal, endpoints in order, one record. */
export async function runTask<P extends Prepared, A>(
  call: Call,
  task: Task<P, A>,
  flow: Surroundings,
): Promise<TaskAnswer<A>> {
  const state = await flow.open(call, task);
  state.watch = flow.watch;
  const fetched = createCallMedia(call, flow.media, task.media?.place);
  let media = NO_MEDIA;
  const tried = await flow.tryEach<P, A, Tally>(state, state.plan.attempts, {
    call: state.call,
    ready(candidate) {
      media = NO_MEDIA;
      const needs = task.media?.needs(candidate) ?? [];
      if (needs.length === 0) return undefined;
      return fetched.gather(needs).then((found) => {
        media = found;
      });
    },
    prepare: (candidate) => task.prepare(candidate, media),
    measure: task.measure,
    send(attempt) {
      attempt.meter = new Tally();
      return task.send(attempt.prepared, lineOf(attempt, flow));
    },
  });
  if ('ended' in tried) throw await flow.giveUp(state, tried);
  const { value, attempt } = tried;
  const { candidate, meter } = attempt;
  const usage = await flow.settle(state, outcomeOfWhole(call), attempt);
  const metadata = flow.metadataOf(state, candidate);
  return { answer: value, served: servedBy(candidate), usage, classes: meter.usage() ?? {}, metadata };
}

/** The way of one attempt. */
function lineOf(attempt: Attempt<Prepared, Tally>, flow: Surroundings): Line {
  const { call, candidate, number, meter } = attempt;
  const { upstream, first_token_ms_max, total_ms_max } = flow;
  const context = { upstream, call, attempt: number, first_token_ms_max, total_ms_max };
  const theirs = flow.dialect(wireOf(candidate));
  return {
    async ask({ manners = theirs, values_max = limits.answer_values_max, ...request }) {
      if (manners === undefined) throw new Error(`no dialect ${wireOf(candidate)} is registered`);
      if (call.cancellation.cancelled) throw new CallCancelled({ may_be_billed: false });
      const held = start(
        { method: 'POST', ...request, candidate, dialect: manners, accept: 'application/json' },
        context,
      );
      try {
        const response = await headersOf(manners, held);
        return {
          body: await readJson(manners, response, call, { ...answerLevels, values_max }),
          headers: response.headers,
        };
      } finally {
        held.release();
      }
    },
    bill(usage, upstream_id) {
      const is_believed = meter.add(usage, upstream_id);
      attempt.used = meter.usage();
      return is_believed;
    },
    isCancelled: () => call.cancellation.cancelled,
  };
}
