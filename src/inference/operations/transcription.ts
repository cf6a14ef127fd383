import { setTimeout as sleep } from 'node:timers/promises';
import type { Model } from '../../catalog/model.ts';
import { pricesInReach } from '../../catalog/price-list.ts';
import { transcribes } from '../../catalog/transcripts.ts';
import { GatewayError } from '../../errors.ts';
import { afterDiscountPpm } from '../../ledger/prices/charge.ts';
import { estimateTokens } from '../../ledger/prices/token-estimate.ts';
import { limits } from '../../limits.ts';
import { type DialectEndpoint, UpstreamError } from '../../providers/dialect.ts';
import { unpricedFields } from '../../providers/shared/worst-case.ts';
import type {
  TimedText,
  TranscriptionAnswer,
  TranscriptionAsk,
  TranscriptionDialect,
  TranscriptionRequest,
} from '../../providers/transcription/dialect.ts';
import { transcriptionDialectOf } from '../../providers/transcription/dialects.ts';
import { transcriptTokens } from '../../providers/transcription/gemini.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { ChatRequest, TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { readable } from '../attempt/answer-bounds.ts';
import type { Measured, Prepared } from '../money/admission.ts';
import { fixedMeasure } from '../money/measure.ts';
import type { WorstCaseCost } from '../money/worst-case.ts';
import type { ModelSource } from '../plan/requested-models.ts';
import { knownModel } from '../plan/unknown-model.ts';
import { withOptions } from '../prepare/provider-options.ts';
import type { Task, TaskFields, TaskUpstream } from './task.ts';

/** JSON values of a transcript, which has some for each word. */
export const TRANSCRIPT_VALUES_MAX = 2_000_000;
/** Consecutive polls that may fail before a transcription is abandoned. */
const TRANSCRIPTION_POLL_FAILURES_MAX = 5;

interface PreparedTranscription extends Prepared {
  dialect: TranscriptionDialect;
  facts: DialectEndpoint;
  fields: JsonObject;
}

/** The estimate for an upstream that reports no tokens: ten a second, as at OpenAI. */
const TOKENS_PER_SECOND = 10;

/** The estimated usage of a sound, without its text. */
export function estimateSound(durationMs: number): TokenClasses {
  return { audio_ms: durationMs, in_audio: Math.ceil((durationMs / 1000) * TOKENS_PER_SECOND), estimated: true };
}

/** The billed length: some providers bill a minimum of seconds. */
function paidMs(durationMs: number, { quirks: { transcription_seconds_min = 0 } }: DialectEndpoint): number {
  return Math.max(durationMs, transcription_seconds_min * 1000);
}

function exposureOf(
  { candidate: { endpoint } }: PreparedTranscription,
  { audio_ms, text, audio, out }: { audio_ms: number; text: number; audio: number; out: number },
): WorstCaseCost {
  const lists = pricesInReach(endpoint, { prompt_tokens: text + audio, service_tier: undefined });
  const lines = lists.map((prices) => {
    const prompt = prices.prompt ?? 0;
    const completion = prices.completion ?? 0;
    const fixedPico =
      Math.ceil((audio_ms * (prices.audio_second ?? 0)) / 1000) +
      text * prompt +
      audio * Math.max(prompt, prices.audio ?? 0) +
      out * Math.max(completion, prices.internal_reasoning ?? 0) +
      (prices.request ?? 0);
    return {
      fixed_pico: fixedPico,
      output_pico: 0,
      afterDiscountPpm: afterDiscountPpm(prices),
    };
  });
  return { lines, output_tokens: 0 };
}

/**
 * The most that an attempt may cost: the measured length, rounded up to seconds, and one second more; for models that are paid by tokens,
 * the most tokens of the sound and its text. All of it is in the exposure, since a transcript cannot be cut.
 */
function measured(prepared: PreparedTranscription, request: TranscriptionRequest, mode: 'strict' | 'soft'): Measured {
  const { facts } = prepared;
  const { duration_ms } = request.sound;
  const seconds = duration_ms / 1000;
  // The client's texts beside the sound are part of the prompt, with at most one token a byte.
  const bytes = Buffer.byteLength(
    JSON.stringify([request.prompt, request.language, prepared.request.provider?.options]),
  );
  const text = bytes + limits.template_tokens_max;
  if (mode === 'soft') {
    const audio = Math.ceil(seconds * limits.sound_tokens_per_second);
    const out = Math.min(
      Math.ceil(seconds * limits.transcript_tokens_per_second),
      transcriptTokens(duration_ms, facts),
    );
    return fixedMeasure(exposureOf(prepared, { audio_ms: paidMs(duration_ms, facts), text, audio, out }));
  }
  const mostSeconds = Math.ceil(seconds) + 1;
  return fixedMeasure(
    exposureOf(prepared, {
      audio_ms: paidMs(mostSeconds * 1000, facts),
      text,
      audio: mostSeconds * limits.sound_tokens_per_second,
      out: transcriptTokens(duration_ms, facts),
    }),
  );
}

function prepare(request: TranscriptionRequest, chat: ChatRequest, candidate: Candidate): PreparedTranscription {
  const dialect = transcriptionDialectOf(candidate.provider);
  if (dialect === undefined) throw new GatewayError(400, `${candidate.provider.name} does not offer transcription`);
  const facts: DialectEndpoint = candidate.endpoint;
  const { fields, report } = dialect.fields(request, facts);
  const rules = { reserved: dialect.reserved, serviceTier: () => undefined, worstCase: { unpricedFields } };
  const merged = withOptions(fields, chat, candidate, rules, report);
  return {
    candidate,
    request: chat,
    output_tokens: 0,
    service_tier: undefined,
    report,
    dialect,
    facts,
    fields: merged,
  };
}

/** The usage of an answer: the billed length and the tokens; estimates of what the upstream does not report and has a price. */
function usageOf(
  { text, seconds, tokens }: Pick<TranscriptionAnswer, 'text' | 'seconds' | 'tokens'>,
  { sound }: TranscriptionRequest,
  { facts, candidate: { endpoint } }: PreparedTranscription,
): TokenClasses {
  const reportedMs = seconds === undefined ? undefined : Math.round(seconds * 1000);
  const audioMs = paidMs(reportedMs ?? sound.duration_ms, facts);
  if (tokens !== undefined) return { ...tokens, audio_ms: audioMs };
  const { prompt = 0, completion = 0, audio = 0 } = endpoint.pricing;
  if (prompt + completion + audio === 0)
    return { audio_ms: audioMs, ...(reportedMs === undefined ? { estimated: true } : {}) };
  return { ...estimateSound(sound.duration_ms), audio_ms: audioMs, out_text: Math.ceil(estimateTokens(text)) };
}

/** Charges an answer: the usage that it reports if that is possible, otherwise our estimate. */
function bill(
  upstream: TaskUpstream,
  answer: Pick<TranscriptionAnswer, 'text' | 'seconds' | 'tokens' | 'upstream_id'>,
  request: TranscriptionRequest,
  prepared: PreparedTranscription,
): void {
  const { text, upstream_id } = answer;
  if (upstream.bill(usageOf(answer, request, prepared), upstream_id)) return;
  upstream.bill(usageOf({ text }, request, prepared));
}

/** Whether a failed poll may be repeated: the work of the upstream continues. */
function mayPollAgain(error: unknown): boolean {
  if (!(error instanceof UpstreamError)) return false;
  return ['unavailable', 'overloaded', 'rate_limited', 'timeout'].includes(error.failure);
}

/** Whether the upstream itself reported that its work failed. */
function isReportedFailure(error: unknown): boolean {
  return error instanceof UpstreamError && error.status === 200 && error.failure === 'invalid_request';
}

/** Sends the sound and polls for its text. Once the upstream works in the background, only a failure that it reports is not billed. */
async function send(prepared: PreparedTranscription, request: TranscriptionRequest, upstream: TaskUpstream) {
  const { dialect, facts, fields } = prepared;
  const deadlineMs = performance.now() + limits.upstream_total_ms_max;
  const overrides = dialect.authAndErrors === undefined ? {} : { authAndErrors: dialect.authAndErrors };
  let ask: TranscriptionAsk = dialect.begin(request, facts, fields);
  let isStarted = false;
  for (let failures = 0; ; ) {
    if (ask.wait_ms !== undefined) await sleep(ask.wait_ms);
    const { path, headers, payload, method } = ask;
    const valuesMax = TRANSCRIPT_VALUES_MAX;
    try {
      const reply = await upstream.send({
        path,
        headers,
        payload,
        values_max: valuesMax,
        ...(method === undefined ? {} : { method }),
        ...overrides,
      });
      const { read } = ask;
      const next = readable(() => read(reply.body, reply.headers));
      if ('answer' in next) return next.answer;
      if ('failure' in next) {
        // The provider bills an answer that the gateway cannot return.
        bill(upstream, next, request, prepared);
        throw next.failure;
      }
      isStarted = ask.is_billed;
      ask = next;
      failures = 0;
      if (performance.now() > deadlineMs) {
        throw new UpstreamError('timeout', 'The answer took longer than the gateway allows');
      }
    } catch (error) {
      failures += 1;
      if (!isStarted || isReportedFailure(error)) throw error;
      if (mayPollAgain(error) && failures < TRANSCRIPTION_POLL_FAILURES_MAX && performance.now() < deadlineMs) {
        ask = { ...ask, wait_ms: limits.transcription_poll_ms_max };
        continue;
      }
      upstream.bill({
        ...estimateSound(request.sound.duration_ms),
        audio_ms: paidMs(request.sound.duration_ms, facts),
      });
      throw error;
    }
  }
}

function modelOf(id: string, catalog: ModelSource): Model {
  const model = knownModel(id, catalog);
  const transcribesByChat = model.endpoints.some(({ provider: slug }) => {
    const provider = catalog.provider(slug);
    return provider !== undefined && transcriptionDialectOf(provider)?.by_chat === true;
  });
  if (!transcribes(model) && !(transcribesByChat && model.input_modalities.includes('audio'))) {
    throw new GatewayError(404, `${id} does not transcribe audio`);
  }
  return model;
}

/** Why an endpoint cannot transcribe: transcription models need a wire of transcription, chat models one that transcribes by chat. */
function refusal({ provider, model }: Candidate): string | undefined {
  const dialect = transcriptionDialectOf(provider);
  if (dialect === undefined || (!dialect.by_chat && !transcribes(model))) {
    return 'its provider is not known to transcribe audio with it';
  }
  return undefined;
}

/** The client's texts beside the sound, which filters do not read. */
function inputOf(
  request: TranscriptionRequest,
  chat: ChatRequest & { model: string },
): TaskFields<PreparedTranscription, TranscriptionAnswer> {
  const { prompt, language } = request;
  const texts = { ...(prompt === undefined ? {} : { prompt }), ...(language === undefined ? {} : { language }) };
  return {
    fields: { ...texts, provider: chat.provider } as JsonObject,
    withFields(fields) {
      const { provider, ...changed } = fields as Pick<TranscriptionRequest, 'prompt' | 'language'> &
        Pick<ChatRequest, 'provider'>;
      const changedChat = { ...chat, ...(provider == null ? {} : { provider }) };
      return { task: transcriptionTask({ ...request, ...changed }, changedChat), request: changedChat };
    },
  };
}

/** Replaces the texts of a transcript. A replacement goes to the first of the parts that it covers; the others are removed. */
function mapTexts(answer: TranscriptionAnswer, shown: (texts: readonly string[]) => string[]): TranscriptionAnswer {
  const timed = (parts: readonly TimedText[]): TimedText[] => {
    const texts = parts.map(({ text }, at) => (at === 0 || /^\s/.test(text) ? text : ` ${text}`));
    return shown(texts).flatMap((text, at) => {
      const part = parts[at]!;
      if (text === texts[at]) return part;
      return text.trim() === '' ? [] : { ...part, text: /^\s/.test(part.text) ? text : text.trimStart() };
    });
  };
  const { text, segments, words } = answer;
  return {
    ...answer,
    text: shown([text])[0]!,
    ...(segments === undefined ? {} : { segments: timed(segments) }),
    ...(words === undefined ? {} : { words: timed(words) }),
  };
}

/** A request for the text of a sound as a task. `chat`: the request as the engine reads it. */
export function transcriptionTask(
  request: TranscriptionRequest,
  chat: ChatRequest & { model: string },
): Task<PreparedTranscription, TranscriptionAnswer> {
  return {
    input: () => inputOf(request, chat),
    models: (catalog) => ({ models: [modelOf(chat.model, catalog)], requested: chat.model }),
    refuses: refusal,
    prepare: (candidate) => prepare(request, chat, candidate),
    measure: (prepared, _output_tokens, mode) => measured(prepared, request, mode),
    async send(prepared, upstream) {
      const answer = await send(prepared, request, upstream);
      bill(upstream, answer, request, prepared);
      return answer;
    },
    mapTexts,
  };
}
