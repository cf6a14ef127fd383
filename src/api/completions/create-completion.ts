import { toGatewayError } from '../../http/error-envelope.ts';
import { sendEventStream } from '../../http/event-stream.ts';
import { inTurns } from '../../http/in-turns.ts';
import type { HttpReply, HttpRequest } from '../../http/request.ts';
import type { Server } from '../../http/server.ts';
import { withSources } from '../../http/sources.ts';
import { writeBody } from '../../inference/attempt/prepare-attempt.ts';
import { CallCancelled } from '../../inference/attempt/upstream-call.ts';
import type { Call, Cancellation, Clock } from '../../inference/call.ts';
import { limits } from '../../limits.ts';
import { CompletionAnswer, CompletionBody, CompletionChunk } from '../../schemas/completions.ts';
import { errors } from '../../schemas/error.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { type AnswerOptions, COMMENT_HEARTBEAT } from '../shared/answer-call.ts';
import { answerWhole } from '../shared/answer-whole.ts';
import { callOf, logFacts } from '../shared/call-of.ts';
import { clientError } from '../shared/client-error.ts';
import { hidesReasoning } from '../shared/hides-reasoning.ts';
import { writeParts } from '../shared/json-parts.ts';
import { checkSamplers, type SamplerOffValues } from '../shared/sampler-off-values.ts';
import { requestedModel } from '../shared/unanswered.ts';
import { completeAll, type PromptEvent, streamAll } from './answer-prompts.ts';
import { type CompletionAnswerFields, completionOf, createCompletionStream, logprobsOf } from './encode.ts';
import type { CompletionLogprobs } from './logprobs.ts';
import { type CompletionRequest, completionRequests } from './parse-request.ts';

export interface CompletionOptions extends AnswerOptions {
  samplerOffValues(): SamplerOffValues;
  clock: Clock;
}

function fieldsOf(body: CompletionRequest, lead: Call, calls: readonly Call[]): CompletionAnswerFields {
  return {
    id: lead.generation_id,
    created: Math.floor(lead.accepted_ms / 1000),
    model: requestedModel(lead.request),
    hide_reasoning: hidesReasoning(lead.request),
    has_logprobs: body.logprobs != null,
    prompts: calls.map(({ generation_id, request }) => {
      const [prompt] = request.messages;
      return { generation_id, echo: body.echo === true && typeof prompt?.content === 'string' ? prompt.content : '' };
    }),
  };
}

/** Reserves memory for several prompts at once: what they share is sent upstream with each. */
async function takeRoom(
  { prompt: _, ...shared }: CompletionRequest,
  [lead, ...others]: readonly Call[],
): Promise<void> {
  const chars = others.length === 0 ? 0 : (await writeBody(shared as JsonObject)).length;
  if (chars <= limits.counted_bytes_min) return;
  const atOnce = Math.min(others.length, limits.completion_prompts_at_once - 1);
  await lead?.room?.take(chars * atOnce * limits.body_copies);
}

/** `POST /completions`, the API before chat: text that continues a prompt, or each of several. */
export function createCompletion(server: Server, options: CompletionOptions): void {
  const { inference, clock } = options;
  server.route({
    method: 'POST',
    url: '/completions',
    config: {
      metered: inference,
      direct: true,
      events: CompletionChunk,
      prepareBody: checkSamplers(options.samplerOffValues),
    },
    schema: {
      operationId: 'createCompletion',
      tags: ['Completions'],
      summary: 'Creates a completion of a prompt (the API before chat completions).',
      description:
        'Each prompt is a call of its own: its choice has the index of the prompt and may fail by itself (`finish_reason: "error"` with `error`); with several prompts `generations` lists their generations. Answers with server-sent events if `stream` is true: chunks of the choices as they arrive, a last event with usage and empty `choices`, then `[DONE]`.',
      body: CompletionBody,
      response: { 200: CompletionAnswer, ...errors(400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 502, 503) },
    },
    handler: async (request, reply) => {
      const { body } = request;
      const calls = completionRequests(body).map((chat) => callOf(request, chat, clock));
      await takeRoom(body, calls);
      const lead = calls[0] as Call;
      reply.header('x-generation-id', lead.generation_id);
      const streamed = body.stream === true;
      request.log_facts = () => logFacts(calls);
      const fields = fieldsOf(body, lead, calls);
      if (streamed) return stream(request, reply, { calls, fields }, options);
      return answerWhole(
        reply,
        { cancellation: new JointCancellation(calls) },
        () => completeAll(inference, calls),
        (answers) => {
          const write = (logprobs?: readonly (CompletionLogprobs | null)[]) =>
            writeParts([{ value: completionOf(answers, fields, logprobs) as JsonObject }]);
          return fields.has_logprobs ? inTurns(logprobsOf(answers)).then<string | Buffer>(write) : write();
        },
      );
    },
  });
}

/** Cancels all calls of a request together. */
class JointCancellation implements Pick<Cancellation, 'cancel' | 'stop' | 'stopped'> {
  stopped = false;
  readonly #calls: readonly Call[];

  constructor(calls: readonly Call[]) {
    this.#calls = calls;
  }

  cancel(): void {
    for (const { cancellation } of this.#calls) cancellation.cancel();
  }

  stop(): void {
    for (const { cancellation } of this.#calls) cancellation.stop();
    this.stopped = this.#calls[0]?.cancellation.stopped === true;
  }
}

async function stream(
  request: HttpRequest,
  reply: HttpReply,
  { calls, fields }: { calls: readonly Call[]; fields: CompletionAnswerFields },
  { inference, heartbeat_first_ms, heartbeat_ms }: CompletionOptions,
): Promise<void> {
  const encoder = createCompletionStream(fields);
  const logFault = (error: { status: number; cause?: unknown }) => {
    if (error.status === 500) {
      request.log.error({ request_id: request.id, err: error.cause ?? error }, 'stream failed');
    }
  };
  let open = calls.length;
  /** The end of the last choice includes the end of the stream, so that both are in one write. */
  const closed = (text: string) => {
    open -= 1;
    return open === 0 ? text + encoder.close() : text;
  };
  const encode = (step: PromptEvent): string => {
    const { index } = step;
    if ('failed' in step) {
      logFault(step.failed);
      return closed(encoder.failedChoice(index, step.failed));
    }
    const { event } = step;
    switch (event.type) {
      case 'open': {
        const echoes = calls[index]?.request.debug?.echo_upstream_body === true;
        return encoder.open(index, event.served) + (echoes ? event.upstream_bodies.map(encoder.debug).join('') : '');
      }
      case 'chunks':
        return encoder.chunks(index, event.chunks);
      case 'end':
        if (event.error !== undefined) logFault(event.error);
        return closed(encoder.end(index, event));
    }
  };
  const cancellation = new JointCancellation(calls);
  await sendEventStream(request, reply, {
    events: withSources(streamAll(inference, calls)),
    encode,
    encodeFailure(thrown) {
      const error = clientError(thrown, cancellation);
      if (error instanceof CallCancelled) return '';
      const shown = toGatewayError(error);
      logFault(shown);
      return encoder.failed(shown, request.principal?.user_id ?? null);
    },
    heartbeat: COMMENT_HEARTBEAT,
    onClientLeft: () => cancellation.cancel(),
    onStop: () => cancellation.stop(),
    heartbeat_first_ms,
    heartbeat_ms,
  }).catch((thrown: unknown) => Promise.reject(clientError(thrown, cancellation)));
}
