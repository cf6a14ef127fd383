import { createHmac, hash } from 'node:crypto';
import { GatewayError } from '../errors.ts';
import { enforcedZeroRetention } from '../guardrails/restrictions.ts';
import { METERED } from '../http/metered.ts';
import { withSources } from '../http/sources.ts';
import type { GenerationRecord } from '../ledger/records.ts';
import type { JsonObject } from '../schemas/json.ts';
import type { LoggedContent } from '../schemas/logged-content.ts';
import type { Prepared } from './admission.ts';
import type { Inference } from './answer.ts';
import type { Call, Clock } from './call.ts';
import { contentOf, OutputText } from './content.ts';
import { ClientGone } from './exchange.ts';
import type { StreamEvent } from './stream-answer.ts';
import type { Task } from './task.ts';

/** A call that has ended. */
export interface EndedCall {
  call: Call;
  record: GenerationRecord;
  /** Milliseconds from the call's arrival to its end. */
  duration_ms: number;
  /** Its request and its answer, if they may be kept; undefined: nothing of them may. */
  content: LoggedContent | undefined;
}

/** Whose call a content is of, when it arrived, and which model answered it. */
export interface LoggedCall {
  id: string;
  organization_id: string;
  workspace_id: string;
  key_hash: string;
  user_id: string | null;
  created_at: string;
  model: string | null;
}

/** Where requests and their answers are kept. Neither method throws. */
export interface ContentKeeper {
  keep(call: LoggedCall, content: LoggedContent): void;
  /** Keeps a stub: the content could not be built. */
  keepStub(call: LoggedCall, reason: string): void;
}

/** Who is sent spans of calls. */
export interface Broadcast {
  /** Whether any destination wants this one. */
  wants(call: Call): boolean;
  /** Never throws. */
  tell(ended: EndedCall): void;
}

export interface LoggedOptions {
  contents: ContentKeeper;
  broadcast: Broadcast;
  clock: Clock;
  log: { error(facts: object, message: string): void };
}

/** A call under way that is to be logged. */
interface Watched {
  call: Call;
  /** Reads a part of the answer. A part that cannot be read leaves a stub in place of the content, and the answer as it is. */
  read(part: (output: OutputText) => void): void;
  end(error?: unknown): void;
}

const BASIS_POINTS = 10_000;

/** What a share is drawn by: `secret` keeps callers from choosing ids that are left out. */
function draw(id: string, secret: string | undefined): string {
  return secret === undefined ? hash('sha256', id) : createHmac('sha256', secret).update(id).digest('hex');
}

/** Whether an id belongs to a share of all, in ten-thousandths: the same on every node. */
export function isSampled(id: string, share_bp: number, secret?: string): boolean {
  if (share_bp >= BASIS_POINTS) return true;
  const drawn = Number.parseInt(draw(id, secret).slice(0, 8), 16) / 2 ** 32;
  return drawn * BASIS_POINTS < share_bp;
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

/** What ended a call, as its log shows it: faults of the gateway's say nothing of themselves. */
function shownError(error: unknown): GatewayError | undefined {
  if (error === undefined || error instanceof GatewayError) return error;
  return error instanceof ClientGone ? undefined : new GatewayError(500, 'Internal error');
}

/**
 * Keeps requests and their answers, and broadcasts them, where a caller's workspace wants that. It sees requests as they go to
 * models, and answers before anything that was redacted is put back. Calls of other workspaces pass through. Whatever cannot be
 * logged never changes an answer: a stub says that the call was made and why its content is missing.
 */
export function createLogged(inner: Inference, { contents, broadcast, clock, log }: LoggedOptions): Inference {
  /** `said`: the words of a call that is not chat. */
  function watch(given: Call, said?: () => JsonObject): Watched | undefined {
    const { logging, guardrails } = given.principal;
    if (logging === undefined) return undefined;
    const { kept_bp } = logging;
    const is_kept =
      kept_bp !== undefined &&
      isSampled(given.generation_id, kept_bp) &&
      enforcedZeroRetention(guardrails) === undefined;
    const is_broadcast = logging.is_broadcast && broadcast.wants(given);
    if (!is_kept && !is_broadcast) return undefined;
    let record: GenerationRecord | undefined;
    /** An endpoint was asked, so that there is something to keep. */
    let is_settled = false;
    let fault: unknown;
    const output = is_kept ? new OutputText() : undefined;
    const call: Call = {
      ...given,
      settled(closed) {
        is_settled = true;
        record ??= closed;
        given.settled?.(closed);
      },
    };

    function failed(err: unknown): void {
      log.error({ err, generation_id: given.generation_id }, 'a call could not be logged: a stub is kept');
    }

    function keep(output: OutputText, error: unknown): LoggedContent | undefined {
      const place = loggedCall(given, record?.model);
      try {
        if (fault !== undefined) throw fault;
        const content = contentOf(given.request, output, shownError(error), said?.());
        contents.keep(place, content);
        return content;
      } catch (err) {
        failed(err);
        contents.keepStub(place, 'its content could not be read');
        return undefined;
      }
    }

    return {
      call,
      read(part) {
        if (output === undefined || fault !== undefined) return;
        try {
          part(output);
        } catch (err) {
          fault = err;
        }
      },
      end(error) {
        const duration_ms = clock.monotonic_ms() - given.accepted_monotonic_ms;
        // A call that no endpoint was asked for is no generation.
        if (!is_settled) return;
        // After the answer: copying takes its time.
        setImmediate(() => {
          const content = output && keep(output, error);
          if (is_broadcast && record !== undefined) broadcast.tell({ call: given, record, duration_ms, content });
        });
      },
    };
  }

  async function* watchedStream({ call, read, end }: Watched): AsyncGenerator<StreamEvent, void, undefined> {
    let failure: unknown;
    try {
      for await (const event of inner.stream(call)) {
        if (event.type === 'chunks') read((output) => output.chunks(event.chunks));
        else if (event.type === 'end') failure = event.error;
        yield event;
      }
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      end(failure);
    }
  }

  /** Runs a call to its end, which is logged. */
  async function ran<T>(
    { call, read, end }: Watched,
    work: (call: Call) => Promise<T>,
    taken: (answer: T, output: OutputText) => void,
  ): Promise<T> {
    let answer: T;
    try {
      answer = await work(call);
    } catch (error) {
      end(error);
      throw error;
    }
    read((output) => taken(answer, output));
    end();
    return answer;
  }

  return {
    [METERED]: true,
    complete(call) {
      const watched = watch(call);
      if (watched === undefined) return inner.complete(call);
      return ran(watched, inner.complete, ({ completion }, output) => output.whole(completion));
    },
    stream(call) {
      const watched = watch(call);
      return watched === undefined ? inner.stream(call) : withSources(watchedStream(watched));
    },
    run<P extends Prepared, A>(call: Call, task: Task<P, A>) {
      const watched = watch(call, () => wordsOf(task));
      if (watched === undefined) return inner.run(call, task);
      return ran(
        watched,
        (watching) => inner.run(watching, task),
        ({ answer }, output) => output.task(answer),
      );
    },
    explain: inner.explain,
    countTokens: inner.countTokens,
    routingOf: inner.routingOf,
  };
}

/** What a call that is not chat says beside its inputs, which its messages have unless they are tokens. */
function wordsOf<P extends Prepared, A>(task: Task<P, A>): JsonObject {
  const { said, unreadable } = task.words();
  const { input, provider: _, ...others } = said;
  return unreadable === undefined ? others : { input, ...others };
}
