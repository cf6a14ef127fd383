import { limits } from '../../limits.ts';
import type { Media, MediaNeed } from '../../providers/dialect.ts';
import { dialectOf } from '../../providers/dialects.ts';
import type { MediaFetcher } from '../../providers/transport/fetch-media.ts';
import type { Upstream } from '../../providers/transport/upstream.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { ChatRequest, TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { answerLevels } from '../../schemas/json-structure.ts';
import type { Attempts } from '../attempt/attempts.ts';
import {
  type AuthAndErrors,
  CallCancelled,
  type Outgoing,
  outcomeOfWhole,
  readJson,
  refuse,
  UpstreamCall,
} from '../attempt/upstream-call.ts';
import type { Call, Clock } from '../call.ts';
import type { Measure, Prepared } from '../money/admission.ts';
import type { AnswerUsage } from '../money/answer-usage.ts';
import { believable } from '../money/meter.ts';
import type { Settlement } from '../money/settlement.ts';
import { type Planner, type Wanted, wireOf } from '../plan/planner.ts';
import { createCallMedia, NO_MEDIA } from '../prepare/media.ts';
import type { Account, AnswerWatch, Attempt } from '../state.ts';

/** One request of a task's attempt. The engine adds the address and the credential. */
export interface TaskRequest extends Pick<Outgoing, 'path' | 'headers' | 'payload'> {
  /** Credentials and errors of the operation's wire, if they differ from the provider's chat. */
  authAndErrors?: AuthAndErrors;
  /** Default: POST. */
  method?: 'GET';
  /** The most values of its answer. Default: `answer_values_max`. */
  values_max?: number;
}

/** The provider of one attempt. */
export interface TaskUpstream {
  /** Sends one request and reads its answer as JSON. Throws `UpstreamError`, or `CallCancelled`. Several may run at once. */
  send(request: TaskRequest): Promise<{ body: JsonValue; headers: Record<string, string | string[] | undefined> }>;
  /**
   * Charges the usage of one answer. Called for each answer at once, so that it is charged even if a later one fails. Returns false for
   * counts that no answer can have: then the caller estimates them.
   */
  bill(usage: TokenClasses, upstreamId?: string): boolean;
  /** True if the client has left: no further request should be sent. */
  isCancelled(): boolean;
}

/** The client's fields of a call that is not chat. */
export interface TaskFields<P extends Prepared, A> {
  /** By the names of the client's API. */
  fields: JsonObject;
  /** A field that filters cannot read because it is not text, if there is one. */
  unreadable?: string | undefined;
  /** The same task with changed fields, and its request as the engine reads it. */
  withFields(fields: JsonObject): { task: Task<P, A>; request: ChatRequest };
}

/** A call that is not chat: the parts that differ from chat. */
export interface Task<P extends Prepared, A> extends Wanted {
  /** The fields that content filters read. */
  input(): TaskFields<P, A>;
  /** The media to fetch before the task can be encoded for an endpoint, and the client's field that names them. Not set: none. */
  media?: { place: string; needs(candidate: Candidate): MediaNeed[] };
  /** Encodes for one endpoint; a promise for long inputs. Throws `GatewayError` 400 if its wire cannot carry the task; another wire may. */
  prepare(candidate: Candidate, media: Media): P | Promise<P>;
  /** The cost at most. */
  measure: Measure<P>;
  /**
   * Sends one request or several, and bills each. When it throws, none may still be running: the bills until then are charged, and
   * the next endpoint starts over.
   */
  send(prepared: P, upstream: TaskUpstream): Promise<A>;
  /** The answer with its texts replaced by the results of `shown`, which reads the texts of one call as one. Not set: the answer has no text. */
  mapTexts?(answer: A, shown: (texts: readonly string[]) => string[]): A;
}

/** The result of a task. */
export interface TaskAnswer<A> {
  answer: A;
  served: { model: string; provider: string };
  usage: AnswerUsage;
  /** The usage of all its requests. */
  classes: TokenClasses;
  metadata: Record<string, unknown> | undefined;
}

/** Sums the usage of one attempt's answers. */
class Tally implements Account {
  finish_reason = null;
  native_finish_reason = null;
  service_tier = null;
  upstream_id: string | null = null;
  #sum: TokenClasses | null = null;

  add(usage: TokenClasses, upstreamId: string | undefined): boolean {
    if (believable(usage) === undefined) return false;
    this.upstream_id ??= upstreamId ?? null;
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

/** The parts of the engine that tasks use. */
interface Surroundings
  extends Pick<Planner, 'open' | 'giveUp' | 'metadataOf'>,
    Pick<Attempts, 'tryEach'>,
    Pick<Settlement, 'settle'> {
  upstream: Upstream;
  media: MediaFetcher;
  clock: Clock;
  first_token_ms_max: number;
  total_ms_max: number;
  watch: AnswerWatch | undefined;
}

/** Runs a task like a chat call: plan, hold, journal, endpoints in order, one record. */
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
      return fetched.gather(needs).then((gathered) => {
        media = gathered;
      });
    },
    prepare: (candidate) => task.prepare(candidate, media),
    measure: task.measure,
    send(attempt) {
      attempt.meter = new Tally();
      return task.send(attempt.prepared, upstreamOf(attempt, flow));
    },
  });
  if ('ended' in tried) throw await flow.giveUp(state, tried);
  const { value, attempt } = tried;
  const { candidate, meter } = attempt;
  const usage = await flow.settle(state, outcomeOfWhole(call), attempt);
  const metadata = flow.metadataOf(state, candidate);
  const served = { model: candidate.model.id, provider: candidate.provider.name };
  return { answer: value, served, usage, classes: meter.usage() ?? {}, metadata };
}

function upstreamOf(attempt: Attempt<Prepared, Tally>, flow: Surroundings): TaskUpstream {
  const { call, candidate, number, meter } = attempt;
  const { upstream, first_token_ms_max, total_ms_max } = flow;
  const context = { upstream, call, attempt: number, first_token_ms_max, total_ms_max };
  const chatDialect = dialectOf(wireOf(candidate));
  return {
    async send({ authAndErrors = chatDialect, values_max = limits.answer_values_max, ...request }) {
      if (call.cancellation.cancelled) throw new CallCancelled({ may_be_billed: false });
      const upstreamCall = new UpstreamCall(
        { method: 'POST', ...request, candidate, dialect: authAndErrors, accept: 'application/json' },
        context,
      );
      try {
        const response = await upstreamCall.exchange.response;
        if (response.status >= 300) await refuse(authAndErrors, response);
        return {
          body: await readJson(authAndErrors, response, call, { ...answerLevels, values_max }),
          headers: response.headers,
        };
      } finally {
        upstreamCall.release();
      }
    },
    bill(usage, upstreamId) {
      const isAccepted = meter.add(usage, upstreamId);
      attempt.used = meter.usage();
      return isAccepted;
    },
    isCancelled: () => call.cancellation.cancelled,
  };
}
