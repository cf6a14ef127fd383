import { hash } from 'node:crypto';
import { GatewayError } from '../errors.ts';
import { zeroRetention } from '../guardrails/restrictions.ts';
import { METERED } from '../http/metered.ts';
import { withSources } from '../http/sources.ts';
import type { GenerationRecord } from '../ledger/records.ts';
import type { LoggedContent } from '../schemas/logged-content.ts';
import type { Inference } from './answer.ts';
import type { Call, Clock } from './call.ts';
import { contentOf, OutputText } from './content.ts';
import type { StreamEvent } from './stream-answer.ts';

/** A call that has ended. */
export interface EndedCall {
  call: Call;
  record: GenerationRecord;
  /** Milliseconds from the call's coming to its end. */
  duration_ms: number;
  /** What was asked and answered, where that may be kept; undefined: nothing of it may. */
  content: LoggedContent | undefined;
}

/** Where what was asked and answered is kept. */
export interface ContentKeeper {
  keep(ended: EndedCall & { content: LoggedContent }): void;
}

/** Who is told of calls. */
export interface Broadcast {
  /** Whether anybody wants to be told of this one. */
  wants(call: Call): boolean;
  tell(ended: EndedCall): void;
}

export interface LoggedOptions {
  contents: ContentKeeper;
  broadcast: Broadcast;
  clock: Clock;
  log: { error(facts: object, message: string): void };
}

/** A call under way whose end somebody wants to know. */
interface Watched {
  call: Call;
  /** Undefined: what is answered need not be known. */
  output: OutputText | undefined;
  end(error?: unknown): void;
}

const BASIS_POINTS = 10_000;

/** Whether a call belongs to a share of all, in ten-thousandths: the same of the same id at every node. */
export function isSampled(id: string, share_bp: number): boolean {
  if (share_bp >= BASIS_POINTS) return true;
  const drawn = Number.parseInt(hash('sha256', id).slice(0, 8), 16) / 2 ** 32;
  return drawn * BASIS_POINTS < share_bp;
}

/**
 * Keeps what was asked and answered, and tells of it, where a caller's workspace wants that. It sees requests as they go to
 * models, and answers before anything that was redacted is put back. Calls of other workspaces pass through.
 */
export function createLogged(inner: Inference, { contents, broadcast, clock, log }: LoggedOptions): Inference {
  function watch(came: Call): Watched | undefined {
    const { logging, guardrails } = came.principal;
    if (logging === undefined) return undefined;
    const { kept_bp } = logging;
    const is_kept =
      kept_bp !== undefined &&
      isSampled(came.generation_id, kept_bp) &&
      zeroRetention(came.request.provider, guardrails) === undefined;
    const is_told = logging.is_broadcast && broadcast.wants(came);
    if (!is_kept && !is_told) return undefined;
    let record: GenerationRecord | undefined;
    const output = is_kept ? new OutputText() : undefined;
    const call: Call = {
      ...came,
      settled(closed) {
        record = closed;
        came.settled?.(closed);
      },
    };
    return {
      call,
      output,
      end(error) {
        const duration_ms = clock.monotonic_ms() - came.accepted_monotonic_ms;
        // A call that no endpoint was asked for is no generation.
        if (record === undefined) return;
        const ended = { call: came, record, duration_ms };
        // After the answer: copying takes its time.
        setImmediate(() => {
          try {
            const shown = error instanceof GatewayError ? error : undefined;
            const content = output && contentOf(came.request, output, shown);
            if (content !== undefined) contents.keep({ ...ended, content });
            if (is_told) broadcast.tell({ ...ended, content });
          } catch (err) {
            log.error({ err, generation_id: came.generation_id }, 'a call could not be logged');
          }
        });
      },
    };
  }

  async function* watchedStream({ call, output, end }: Watched): AsyncGenerator<StreamEvent, void, undefined> {
    let failure: unknown;
    try {
      for await (const event of inner.stream(call)) {
        if (event.type === 'chunks') output?.chunks(event.chunks);
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

  /** Runs a call to its end, which is told. */
  async function ran<T>(
    { call, end }: Watched,
    work: (call: Call) => Promise<T>,
    told: (answer: T) => void,
  ): Promise<T> {
    let answer: T;
    try {
      answer = await work(call);
    } catch (error) {
      end(error);
      throw error;
    }
    told(answer);
    end();
    return answer;
  }

  return {
    [METERED]: true,
    complete(call) {
      const watched = watch(call);
      if (watched === undefined) return inner.complete(call);
      return ran(watched, inner.complete, ({ completion }) => watched.output?.whole(completion));
    },
    stream(call) {
      const watched = watch(call);
      return watched === undefined ? inner.stream(call) : withSources(watchedStream(watched));
    },
    run(call, task) {
      const watched = watch(call);
      if (watched === undefined) return inner.run(call, task);
      return ran(
        watched,
        (given) => inner.run(given, task),
        ({ answer }) => watched.output?.task(answer),
      );
    },
    explain: inner.explain,
    countTokens: inner.countTokens,
    routingOf: inner.routingOf,
  };
}
