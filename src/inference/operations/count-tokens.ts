import { GatewayError } from '../../errors.ts';
import { UpstreamError } from '../../providers/dialect.ts';
import { dialectOf } from '../../providers/dialects.ts';
import { templated } from '../../providers/tool-template/dialect.ts';
import type { Upstream } from '../../providers/transport/upstream.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { readable } from '../attempt/answer-bounds.ts';
import type { LogDecoderFault } from '../attempt/failure.ts';
import { clientError } from '../attempt/failure.ts';
import { type PreparedAttempt, prepareAttempt, statesTools, writeBody } from '../attempt/prepare-attempt.ts';
import { readJson, refuse, UpstreamCall } from '../attempt/upstream-call.ts';
import type { Call } from '../call.ts';
import { estimatePrompt, promptTexts } from '../money/meter.ts';
import type { Tokenizer } from '../money/tokenizer.ts';
import { type Planner, wireOf } from '../plan/planner.ts';
import { mediaNeeds } from '../prepare/media.ts';

/** How long a provider can take to count the tokens of a prompt. */
const TOKEN_COUNT_MS_MAX = 5_000;

/** The tokens of a prompt. */
export interface CountedTokens {
  input_tokens: number;
  /** Counted by the gateway, not by the model's provider. */
  is_estimate: boolean;
  /** Other fields of the provider's answer. */
  rest: JsonObject;
}

export interface CountOptions {
  upstream: Upstream;
  tokenizer: Tokenizer;
  logDecoderFault: LogDecoderFault;
}

/**
 * Counts the prompt of a call for the first endpoint of its plan: by the provider if it counts free of charge and in time, otherwise
 * by the gateway. The call counts against rate limits as a request; it is not charged, holds no money and leaves no generation.
 * Throws `GatewayError`, or `CallCancelled` if the client leaves first.
 */
export function createTokenCount(
  { upstream, tokenizer, logDecoderFault }: CountOptions,
  { open }: Pick<Planner, 'open'>,
): (call: Call) => Promise<CountedTokens> {
  /** The provider's count; undefined if it does not count, or fails. */
  async function providersCount(call: Call, candidate: Candidate): Promise<CountedTokens | undefined> {
    const counter = dialectOf(wireOf(candidate)).tokenCounter;
    if (counter === undefined || mediaNeeds(call.request, candidate).length > 0) return undefined;
    const prepared = await preparedFor(call, candidate);
    if (prepared === undefined) return undefined;
    const { method, path, headers, body } = counter.request(prepared.encoded, candidate.endpoint);
    const outgoing = { candidate, dialect: prepared.dialect, method, path, headers, accept: 'application/json' };
    const limitMs = TOKEN_COUNT_MS_MAX;
    const context = { upstream, call, attempt: 1, first_token_ms_max: limitMs, total_ms_max: limitMs };
    const upstreamCall = new UpstreamCall({ ...outgoing, payload: await writeBody(body) }, context);
    try {
      const response = await upstreamCall.exchange.response;
      if (response.status >= 300) await refuse(prepared.dialect, response);
      const body = await readJson(prepared.dialect, response, call);
      const { input_tokens, ...rest } = readable(() => counter.read(body));
      return { input_tokens, rest, is_estimate: false };
    } catch (error) {
      // A provider that refuses the prompt would refuse the call too; other failures do not concern the client.
      if (!(error instanceof UpstreamError)) throw error;
      logDecoderFault(error, candidate);
      if (error.failure === 'invalid_request' && error.status === 400) {
        const { provider, own } = candidate;
        throw clientError([{ provider, own, error }]);
      }
      return undefined;
    } finally {
      upstreamCall.release();
    }
  }

  /** Undefined if the wire cannot carry the request: the call would go to the next endpoint. */
  async function preparedFor(call: Call, candidate: Candidate): Promise<PreparedAttempt | undefined> {
    try {
      return await prepareAttempt(call.request, candidate);
    } catch (error) {
      if (error instanceof GatewayError && error.status === 400) return undefined;
      throw error;
    }
  }

  async function ownCount(original: ChatRequest, candidate: Candidate): Promise<CountedTokens> {
    const request = statesTools(original, candidate) ? templated(original).request : original;
    const { texts, tokens: otherTokens } = promptTexts(request);
    const tokens = await tokenizer.count(texts.join('\n'), candidate);
    const inputTokens = tokens === undefined ? estimatePrompt(request) : tokens + otherTokens;
    return { input_tokens: inputTokens, is_estimate: true, rest: {} };
  }

  return async (received) => {
    const { call, plan, reservation } = await open(received);
    const candidate = plan.attempts[0]!;
    try {
      await reservation?.acquire(candidate);
    } catch (error) {
      reservation?.release();
      throw error;
    }
    try {
      return (await providersCount(call, candidate)) ?? (await ownCount(call.request, candidate));
    } finally {
      reservation?.commit(0, candidate.model.id);
    }
  };
}
