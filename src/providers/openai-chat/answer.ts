import type { Annotation, ChatChunk, ResponseExt } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { AttemptState } from '../dialect.ts';
import { citationsOf } from './attachments.ts';
import { errorInside } from './errors.ts';
import { finishReason } from './finish.ts';
import { logprobsOf } from './logprobs.ts';
import { readState } from './state.ts';
import { createTurnWriter } from './turn.ts';
import { isZeroUsage, readUsage } from './usage.ts';
import {
  isObject,
  numberOf,
  textOf,
  type WireAnswer,
  type WireChoice,
  type WireMessage,
  type WireUsage,
} from './wire.ts';

/** The one reader of this wire's answers, streamed or whole. */
export interface AnswerReader {
  /** Throws `UpstreamError` where a choice holds an error. */
  take(answer: WireAnswer, is_whole: boolean, chunks: ChatChunk[]): void;
  /** True when the object told usage. */
  takeUsage(answer: WireAnswer): boolean;
  isStarted(): boolean;
  /** Whether the upstream said why its answer is over. Usage says no such thing: some tell it as they go. */
  isComplete(): boolean;
  /** Closes all blocks and says why the answer ended. */
  finish(chunks: ChatChunk[]): void;
  /** One last chunk: usage and remainder. */
  emitUsage(chunks: ChatChunk[]): void;
}

/** Makes the reader of one answer. */
export function createAnswerReader(state: AttemptState): AnswerReader {
  const known = readState(state);
  const turn = createTurnWriter(known, state.generation_id);
  const rest: JsonObject = {};
  let isStarted = false;
  let requestId: string | undefined;
  let isIdTold = false;
  let serviceTier: string | undefined;
  let toldTier: string | undefined;
  let native: string | undefined;
  let stopSequence: string | undefined;
  let usage: WireUsage | undefined;
  let sources: Annotation[] = [];

  function start(answer: WireAnswer, chunks: ChatChunk[]): void {
    // Groq's compound systems end with an id of "stub".
    if (requestId === undefined && answer.id !== 'stub') requestId = textOf(answer.id);
    serviceTier = tierOf(answer.service_tier) ?? serviceTier;
    if (isStarted) return;
    isStarted = true;
    isIdTold = requestId !== undefined;
    const response: Partial<ResponseExt> = { wire: 'openai-chat', rest: {} };
    if (requestId !== undefined) response.requestId = requestId;
    const first: ChatChunk = { delta: { role: 'assistant' }, ext: { response } };
    const fingerprint = textOf(answer.system_fingerprint);
    if (fingerprint !== undefined) first.system_fingerprint = fingerprint;
    if (serviceTier !== undefined) first.service_tier = serviceTier;
    toldTier = serviceTier;
    chunks.push(first);
  }

  function takeChoice(choice: WireChoice, is_whole: boolean, chunks: ChatChunk[]): void {
    const fault = choice.error == null ? undefined : errorInside({ error: choice.error });
    if (fault !== undefined) throw fault;
    // In a stream, a message beside or after deltas repeats them (Perplexity).
    const message = choice.delta ?? (turn.hasProduced() ? undefined : choice.message);
    if (isObject(message)) turn.take(message as WireMessage, is_whole || choice.delta == null, chunks);
    const logprobs = choice.logprobs == null ? undefined : logprobsOf(choice.logprobs);
    if (logprobs !== undefined) {
      const last = chunks.at(-1);
      // The probabilities belong to the text they come with.
      if (last?.delta.content !== undefined || last?.delta.refusal !== undefined) last.logprobs = logprobs;
      else chunks.push({ delta: {}, logprobs });
    }
    native = textOf(choice.finish_reason) ?? native;
    stopSequence = textOf(choice.stop_reason) ?? textOf(choice.matched_stop) ?? stopSequence;
    if (choice.content_filter_results != null) rest['content_filter_results'] = choice.content_filter_results;
  }

  function takeUsage(answer: WireAnswer): boolean {
    const told = isObject(answer.usage) ? answer.usage : answer.x_groq?.usage;
    if (!isObject(told) || (usage !== undefined && isZeroUsage(told))) return false;
    usage = told;
    return true;
  }

  return {
    take(answer, is_whole, chunks) {
      start(answer, chunks);
      const choices = Array.isArray(answer.choices) ? answer.choices : [];
      for (const choice of choices) {
        const isOurs = isObject(choice) && !numberOf(choice['index']);
        if (isOurs) takeChoice(choice as WireChoice, is_whole, chunks);
      }
      takeUsage(answer);
      if (answer.search_results != null || answer.citations != null) {
        const found = citationsOf(answer.search_results);
        sources = found.length > 0 ? found : sources.length > 0 ? sources : citationsOf(answer.citations);
      }
      // Kept for the record as they came.
      if (answer.moderation != null) rest['moderation'] = answer.moderation;
      if (answer.prompt_filter_results != null) rest['prompt_filter_results'] = answer.prompt_filter_results;
      if (answer.usage_breakdown != null) rest['usage_breakdown'] = answer.usage_breakdown;
    },
    takeUsage,
    isStarted: () => isStarted,
    isComplete: () => native !== undefined,
    finish(chunks) {
      turn.end(chunks);
      if (sources.length > 0) chunks.push({ delta: { annotations: sources } });
      const reason = finishReason(native, { has_calls: turn.hasCalls(), is_empty: !turn.hasProduced() });
      const last: ChatChunk = { delta: {}, finish_reason: reason, native_finish_reason: native ?? null };
      if (serviceTier !== toldTier) last.service_tier = serviceTier ?? null;
      chunks.push(last);
    },
    emitUsage(chunks) {
      const response: Partial<ResponseExt> = { wire: 'openai-chat', rest };
      const classes = usage === undefined ? undefined : readUsage(usage, known.cachedTokens());
      if (usage !== undefined) rest['usage'] = usage;
      if (classes !== undefined) response.usage = classes;
      if (stopSequence !== undefined) response.stopSequence = stopSequence;
      if (!isIdTold && requestId !== undefined) response.requestId = requestId;
      chunks.push({ delta: {}, ext: { response } });
    },
  };
}

/** Groq's `on_demand` is what others call `default`. */
function tierOf(value: unknown): string | undefined {
  const tier = textOf(value);
  return tier === 'on_demand' ? 'default' : tier;
}
