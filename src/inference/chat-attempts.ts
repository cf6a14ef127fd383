import { type Media, UpstreamError } from '../providers/dialect.ts';
import type { Upstream } from '../providers/upstream.ts';
import type { Candidate } from '../routing/plan.ts';
import type { ChatCompletion, ChatRequest } from '../schemas/inner.ts';
import type { Measure } from './admission.ts';
import { attemptStream, attemptWhole, type OpenStream, type PreparedAttempt } from './attempt.ts';
import { attemptNumber, type Work } from './attempts.ts';
import type { Cancellation } from './call.ts';
import type { ChatWork } from './chat-work.ts';
import { type Fitting, type FittingOptions, fittingOf } from './fitting.ts';
import { NO_MEDIA } from './media.ts';
import { createMeter, type Meter } from './meter.ts';
import type { Session } from './settlement.ts';

/** The beginning of a stream, or a whole answer, with what follows what it uses. */
export interface MeteredStream {
  stream: OpenStream;
  meter: Meter;
}
export interface MeteredCompletion {
  completion: ChatCompletion;
  meter: Meter;
}

/** The request as one endpoint must be told it. */
type Adapt = (request: ChatRequest, candidate: Candidate) => ChatRequest;

/** What the attempts of a chat call do: ask one endpoint for a whole answer, or for a stream. */
export interface ChatAttempts {
  /** Looks at a call once, before its attempts. Throws `GatewayError` 400 for what it asks of the gateway's tools and cannot be. */
  fittingFor(session: Session): Fitting;
  whole(session: Session): Work<PreparedAttempt, MeteredCompletion>;
  streamed(session: Session, adapt?: Adapt): Work<PreparedAttempt, MeteredStream>;
}

export interface ChatAttemptsOptions extends FittingOptions {
  upstream: Upstream;
  first_token_ms_max: number;
  total_ms_max: number;
}

/** An answer that ended in an error before it held anything is a failure like any other. */
function requireSubstance(meter: Meter): void {
  if (!meter.produced && meter.finish_reason === 'error') {
    throw new UpstreamError('unavailable', 'The provider ended its answer with an error', {
      status: 200,
      native_code: meter.native_finish_reason,
    });
  }
}

export function createChatAttempts(
  options: ChatAttemptsOptions,
  chat: ChatWork,
  measure: Measure<PreparedAttempt>,
): ChatAttempts {
  const { upstream, first_token_ms_max, total_ms_max } = options;

  function fittingFor(session: Session): Fitting {
    session.fitting ??= fittingOf(session.call, options);
    return session.fitting;
  }

  function workOf<T>(
    session: Session,
    send: (prepared: PreparedAttempt, cancellation?: Cancellation) => Promise<T>,
    adapt: Adapt = (request) => request,
  ): Work<PreparedAttempt, T> {
    const { call } = session;
    const { request } = call;
    const { adapter, tools, fetched } = fittingFor(session);
    /** What the attempt under way needs. */
    let media: Media = NO_MEDIA;
    let asked = 0;
    const gather = (candidate: Candidate, nth: number): Promise<void> | undefined => {
      const fitted = adapter === undefined ? request : adapter.fit(request, candidate).request;
      const needs = chat.needs(fitted, candidate);
      if (needs.length === 0) return undefined;
      return fetched.gather(needs).then((found) => {
        // A hedge does not wait for it: it may come when another attempt is got ready.
        if (nth === asked) media = found;
      });
    };
    return {
      ready(candidate, is_beside) {
        media = NO_MEDIA;
        asked += 1;
        const nth = asked;
        const waiting = adapter?.ready?.(candidate, is_beside);
        return waiting === undefined ? gather(candidate, nth) : waiting.then(() => gather(candidate, nth));
      },
      prepare(candidate, strip_state, spend) {
        const adapted = adapt(request, candidate);
        if (adapter === undefined && tools === undefined) {
          return chat.prepare(adapted, candidate, { strip_state, spend, media });
        }
        const fitted = adapter?.fit(adapted, candidate) ?? { request: adapted, report: [] };
        const declared = tools?.declare(fitted.request) ?? fitted.request;
        const prepared = chat.prepare(declared, candidate, { strip_state, spend, media });
        return fitted.report.length === 0 ? prepared : { ...prepared, report: [...fitted.report, ...prepared.report] };
      },
      measure,
      send(prepared, cancellation) {
        if (request.debug?.echo_upstream_body === true) session.bodies.push(prepared.encoded.body);
        return send(prepared, cancellation);
      },
    };
  }

  function contextOf(session: Session, cancellation?: Cancellation) {
    const call = cancellation === undefined ? session.call : { ...session.call, cancellation };
    return { upstream, call, attempt: attemptNumber(session), step: session.step, first_token_ms_max, total_ms_max };
  }

  return {
    fittingFor,

    whole: (session) =>
      workOf(session, async (prepared) => {
        const completion = await attemptWhole(prepared, contextOf(session));
        const meter = createMeter();
        meter.completion(completion);
        requireSubstance(meter);
        return { completion, meter };
      }),

    streamed: (session, adapt) => ({
      ...workOf(
        session,
        async (prepared, cancellation) => {
          const stream = await attemptStream(prepared, contextOf(session, cancellation));
          const meter = createMeter();
          for (const chunk of stream.first) meter.chunk(chunk);
          try {
            requireSubstance(meter);
          } catch (error) {
            stream.close();
            throw error;
          }
          return { stream, meter };
        },
        adapt,
      ),
      goes_on: true,
      discard({ stream, meter }, { request }) {
        stream.close();
        return meter.usage(request);
      },
    }),
  };
}
