import { createHmac, hash } from 'node:crypto';
import { GatewayError } from '../../errors.ts';
import { enforcedZeroRetention } from '../../guardrails/policy/restrictions.ts';
import type { GenerationRecord } from '../../ledger/records.ts';
import type { ChatChunk } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { LoggedContent } from '../../schemas/logged-content.ts';
import { CallCancelled } from '../attempt/upstream-call.ts';
import type { Call, Clock } from '../call.ts';
import type { WholeAnswer } from '../events.ts';
import type { Prepared } from '../money/admission.ts';
import type { Task, TaskAnswer } from '../operations/task.ts';
import type { CallEnd, CallHooks, Middleware, TaskCall } from '../pipeline.ts';
import type { AnswerTransform } from '../transform.ts';
import { contentOf, OutputText } from './content.ts';

/** A call that has ended. */
export interface EndedCall {
  call: Call;
  record: GenerationRecord;
  /** Milliseconds from the call's arrival to its end. */
  duration_ms: number;
  /** The request and the answer; undefined if they may not be kept. */
  content: LoggedContent | undefined;
}

/** The owner, time and model of a logged call. */
export interface LoggedCall {
  id: string;
  organization_id: string;
  workspace_id: string;
  key_hash: string;
  user_id: string | null;
  created_at: string;
  model: string | null;
}

/** Stores requests and answers. Neither method throws. */
export interface ContentKeeper {
  keep(call: LoggedCall, content: LoggedContent): void;
  /** Keeps a stub: the content could not be built. */
  keepStub(call: LoggedCall, reason: string): void;
}

/** Sends spans of calls to destinations. */
export interface Broadcast {
  /** Whether any destination wants the call. */
  wants(call: Call): boolean;
  /** Never throws. */
  add(ended: EndedCall): void;
}

export interface RequestLogOptions {
  contents: ContentKeeper;
  broadcast: Broadcast;
  clock: Clock;
  log: { error(facts: object, message: string): void };
}

const BASIS_POINTS = 10_000;

/** The hash that sampling uses. With `secret`, callers cannot choose ids that are left out. */
function draw(id: string, secret: string | undefined): string {
  return secret === undefined ? hash('sha256', id) : createHmac('sha256', secret).update(id).digest('hex');
}

/** Whether an id is in a sample of `shareBp` ten-thousandths; the same on every node. */
export function isSampled(id: string, shareBp: number, secret?: string): boolean {
  if (shareBp >= BASIS_POINTS) return true;
  const position = Number.parseInt(draw(id, secret).slice(0, 8), 16) / 2 ** 32;
  return position * BASIS_POINTS < shareBp;
}

function loggedCall({ generation_id, principal, accepted_ms, request }: Call, model: string | undefined): LoggedCall {
  return {
    id: generation_id,
    organization_id: principal.organization_id,
    workspace_id: principal.workspace_id,
    key_hash: principal.key_hash ?? '',
    user_id: principal.user_id,
    created_at: new Date(accepted_ms).toISOString(),
    model: model ?? request.model ?? null,
  };
}

/** The error of a call as its log shows it. The gateway's own faults are not described. */
function shownError(error: unknown): GatewayError | undefined {
  if (error === undefined || error instanceof GatewayError) return error;
  return error instanceof CallCancelled ? undefined : new GatewayError(500, 'Internal error');
}

/** The fields of a call that is not chat. Its inputs are in its messages unless they are tokens. */
function fieldsOf<P extends Prepared, A>(task: Task<P, A>): JsonObject {
  const { fields, unreadable } = task.input();
  const { input, provider: _, ...others } = fields;
  return unreadable === undefined ? others : { input, ...others };
}

/**
 * Stores and broadcasts requests and answers if the caller's workspace is set to. Sees requests as they go to models, and answers
 * before redacted values are restored. A failure to log never changes an answer: a stub records the call and why its content is missing.
 */
export function requestLog(options: RequestLogOptions): Middleware {
  return {
    name: 'request log',
    of: 'logging',
    begin(call, purpose) {
      const { logging, guardrails } = call.principal;
      if (logging === undefined || (purpose !== 'answer' && purpose !== 'task')) return undefined;
      const { kept_bp } = logging;
      const isKept =
        kept_bp !== undefined &&
        isSampled(call.generation_id, kept_bp) &&
        enforcedZeroRetention(guardrails) === undefined;
      const isBroadcast = logging.is_broadcast && options.broadcast.wants(call);
      return isKept || isBroadcast ? new RequestLogMiddleware(call, options, { isKept, isBroadcast }) : undefined;
    },
  };
}

/** The log of one call. */
class RequestLogMiddleware implements CallHooks {
  /** The call as it goes to models. */
  #call: Call;
  /** The fields of a call that is not chat; undefined for chat. */
  #taskFields: (() => JsonObject) | undefined = undefined;
  readonly #options: RequestLogOptions;
  /** The texts of the answer; undefined if its content is not kept. */
  readonly #output: OutputText | undefined;
  readonly #isBroadcast: boolean;
  /** Why the answer cannot be read. */
  #fault: unknown;

  constructor(
    call: Call,
    options: RequestLogOptions,
    { isKept, isBroadcast }: { isKept: boolean; isBroadcast: boolean },
  ) {
    this.#call = call;
    this.#options = options;
    this.#output = isKept ? new OutputText() : undefined;
    this.#isBroadcast = isBroadcast;
  }

  onRequest(call: Call): Call {
    this.#call = call;
    return call;
  }

  onTask<P extends Prepared, A>(call: Call, task: Task<P, A>): TaskCall<P, A> {
    this.#taskFields = () => fieldsOf(task);
    this.#call = call;
    return { call, task };
  }

  createTransform(): AnswerTransform | undefined {
    return this.#output === undefined
      ? undefined
      : new Observer((chunks) => this.#read((output) => output.chunks(chunks)));
  }

  onWhole(answer: WholeAnswer): WholeAnswer {
    this.#read((output) => output.whole(answer.completion));
    return answer;
  }

  onTaskAnswer<A>(answer: TaskAnswer<A>): TaskAnswer<A> {
    this.#read((output) => output.task(answer.answer));
    return answer;
  }

  onEnd({ error, isSettled, record }: CallEnd): void {
    const { clock, broadcast } = this.#options;
    const call = this.#call;
    const durationMs = clock.monotonicMs() - call.accepted_monotonic_ms;
    // A call that was sent to no endpoint is not a generation.
    if (!isSettled) return;
    // After the answer, since copying takes time.
    setImmediate(() => {
      const content = this.#output && this.#keep(this.#output, record, error);
      if (this.#isBroadcast && record !== undefined) broadcast.add({ call, record, duration_ms: durationMs, content });
    });
  }

  /** Reads a part of the answer. A part that cannot be read replaces the content by a stub; the answer is unchanged. */
  #read(part: (output: OutputText) => void): void {
    if (this.#output === undefined || this.#fault !== undefined) return;
    try {
      part(this.#output);
    } catch (error) {
      this.#fault = error;
    }
  }

  #keep(output: OutputText, record: GenerationRecord | undefined, error: unknown): LoggedContent | undefined {
    const { contents, log } = this.#options;
    const call = this.#call;
    const place = loggedCall(call, record?.model);
    try {
      if (this.#fault !== undefined) throw this.#fault;
      const content = contentOf(call.request, output, shownError(error), this.#taskFields?.());
      contents.keep(place, content);
      return content;
    } catch (err) {
      log.error({ err, generation_id: call.generation_id }, 'a call could not be logged: a stub is kept');
      contents.keepStub(place, 'its content could not be read');
      return undefined;
    }
  }
}

/** Sees the chunks of an answer, and leaves them as they are. */
class Observer implements AnswerTransform {
  readonly refusal = undefined;
  readonly #see: (chunks: readonly ChatChunk[]) => void;

  constructor(see: (chunks: readonly ChatChunk[]) => void) {
    this.#see = see;
  }

  take(chunks: ChatChunk[]): ChatChunk[] {
    this.#see(chunks);
    return chunks;
  }

  reopen(): ChatChunk[] {
    return [];
  }

  end(): ChatChunk[] {
    return [];
  }

  hasChanged(): boolean {
    return false;
  }
}
