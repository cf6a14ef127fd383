import { setTimeout as sleep } from 'node:timers/promises';
import type { Model } from '../../catalog/model.ts';
import { pricesInReach } from '../../catalog/price-list.ts';
import { transcribes } from '../../catalog/transcripts.ts';
import { GatewayError } from '../../errors.ts';
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
import { withOptions } from '../attempt/attempt.ts';
import type { Measured, Prepared } from '../money/admission.ts';
import type { WorstCaseCost } from '../money/worst-case.ts';
import type { ModelSource } from '../plan/requested-models.ts';
import { unknownModel } from '../plan/unknown-model.ts';
import type { Line, Task, Words } from './task.ts';

interface PreparedTranscription extends Prepared {
  dialect: TranscriptionDialect;
  facts: DialectEndpoint;
  fields: JsonObject;
}

/** What the answer used by our own count, where the upstream does not tell: ten tokens for a second, as at OpenAI. */
const TOKENS_PER_SECOND = 10;

/** What a sound uses by our own count, before any of its text is known. */
export function estimateSound(duration_ms: number): TokenClasses {
  return { audio_ms: duration_ms, in_audio: Math.ceil((duration_ms / 1000) * TOKENS_PER_SECOND), estimated: true };
}

/** The length that is paid for: providers round up to seconds, and some bill no less than a few. */
function paidMs(duration_ms: number, { quirks: { transcription_seconds_min = 0 } }: DialectEndpoint): number {
  return Math.max(duration_ms, transcription_seconds_min * 1000);
}

function exposureOf(
  { candidate: { endpoint } }: PreparedTranscription,
  { audio_ms, text, audio, out }: { audio_ms: number; text: number; audio: number; out: number },
): WorstCaseCost {
  const lists = pricesInReach(endpoint, { prompt_tokens: text + audio, service_tier: undefined });
  const lines = lists.map((prices) => {
    const prompt = prices.prompt ?? 0;
    const completion = prices.completion ?? 0;
    const fixed_pico =
      Math.ceil((audio_ms * (prices.audio_second ?? 0)) / 1000) +
      text * prompt +
      audio * Math.max(prompt, prices.audio ?? 0) +
      out * Math.max(completion, prices.internal_reasoning ?? 0) +
      (prices.request ?? 0);
    return { fixed_pico, output_pico: 0, afterDiscountPpm: 1_000_000 - Math.round((prices.discount ?? 0) * 1_000_000) };
  });
  return { lines, output_tokens: 0 };
}

/**
 * What an attempt may cost: the measured length to the next second and one more, and for models that are paid by tokens the
 * most that so much sound and its text may count. All of it is in the exposure, since a transcript cannot be cut.
 */
function measured(prepared: PreparedTranscription, request: TranscriptionRequest, mode: 'strict' | 'soft'): Measured {
  const { facts } = prepared;
  const { duration_ms } = request.sound;
  const seconds = duration_ms / 1000;
  const of = (exposure: WorstCaseCost) => ({
    exposure,
    floor: () => exposure,
    least_tokens: 0,
    count: async () => undefined,
  });
  // What a client says besides the sound is text of the prompt, a byte a token at most.
  const words = Buffer.byteLength(
    JSON.stringify([request.prompt, request.language, prepared.request.provider?.options]),
  );
  const text = words + limits.template_tokens_max;
  if (mode === 'soft') {
    const audio = Math.ceil(seconds * limits.sound_tokens_per_second);
    const out = Math.min(
      Math.ceil(seconds * limits.transcript_tokens_per_second),
      transcriptTokens(duration_ms, facts),
    );
    return of(exposureOf(prepared, { audio_ms: paidMs(duration_ms, facts), text, audio, out }));
  }
  const most_s = Math.ceil(seconds) + 1;
  return of(
    exposureOf(prepared, {
      audio_ms: paidMs(most_s * 1000, facts),
      text,
      audio: most_s * limits.sound_tokens_per_second,
      out: transcriptTokens(duration_ms, facts),
    }),
  );
}

function prepare(request: TranscriptionRequest, asked: ChatRequest, candidate: Candidate): PreparedTranscription {
  const dialect = transcriptionDialectOf(candidate.provider);
  if (dialect === undefined) throw new GatewayError(400, `${candidate.provider.name} does not offer transcription`);
  const facts: DialectEndpoint = candidate.endpoint;
  const { fields, report } = dialect.fields(request, facts);
  const rules = { reserved: dialect.reserved, serviceTier: () => undefined, worstCase: { unpricedFields } };
  const merged = withOptions(fields, asked, candidate, rules, report);
  return {
    candidate,
    request: asked,
    output_tokens: 0,
    service_tier: undefined,
    report,
    dialect,
    facts,
    fields: merged,
  };
}

/** What an answer used: the length that the upstream bills, and its tokens; what it does not tell and is priced, by our count. */
function usageOf(
  { text, seconds, tokens }: Pick<TranscriptionAnswer, 'text' | 'seconds' | 'tokens'>,
  { sound }: TranscriptionRequest,
  { facts, candidate: { endpoint } }: PreparedTranscription,
): TokenClasses {
  const told_ms = seconds === undefined ? undefined : Math.round(seconds * 1000);
  const audio_ms = paidMs(told_ms ?? sound.duration_ms, facts);
  if (tokens !== undefined) return { ...tokens, audio_ms };
  const { prompt = 0, completion = 0, audio = 0 } = endpoint.pricing;
  if (prompt + completion + audio === 0) return { audio_ms, ...(told_ms === undefined ? { estimated: true } : {}) };
  return { ...estimateSound(sound.duration_ms), audio_ms, out_text: Math.ceil(estimateTokens(text)) };
}

/** Charges an answer: what it tells of its use, where that can be, else our own count. */
function bill(
  line: Line,
  answer: Pick<TranscriptionAnswer, 'text' | 'seconds' | 'tokens' | 'upstream_id'>,
  request: TranscriptionRequest,
  prepared: PreparedTranscription,
): void {
  const { text, upstream_id } = answer;
  if (!line.bill(usageOf(answer, request, prepared), upstream_id)) line.bill(usageOf({ text }, request, prepared));
}

/** Failures of a question after work that goes on: it may be asked again. */
function mayAskAgain(error: unknown): boolean {
  if (!(error instanceof UpstreamError)) return false;
  return ['unavailable', 'overloaded', 'rate_limited', 'timeout'].includes(error.failure);
}

/** The upstream's own word that what it worked at has failed. */
function isToldFailure(error: unknown): boolean {
  return error instanceof UpstreamError && error.status === 200 && error.failure === 'invalid_request';
}

/** Asks until the text is there. Once the upstream works in the background, only its own word of failure ends that without a bill. */
async function send(prepared: PreparedTranscription, request: TranscriptionRequest, line: Line) {
  const { dialect, facts, fields } = prepared;
  const deadline_ms = performance.now() + limits.upstream_total_ms_max;
  const manners = dialect.manners === undefined ? {} : { manners: dialect.manners };
  let ask: TranscriptionAsk = dialect.begin(request, facts, fields);
  let is_ordered = false;
  for (let failures = 0; ; ) {
    if (ask.wait_ms !== undefined) await sleep(ask.wait_ms);
    const { path, headers, payload, method } = ask;
    const values_max = limits.transcript_values_max;
    try {
      const reply = await line.ask({
        path,
        headers,
        payload,
        values_max,
        ...(method === undefined ? {} : { method }),
        ...manners,
      });
      const { read } = ask;
      const next = readable(() => read(reply.body, reply.headers));
      if ('answer' in next) return next.answer;
      if ('failure' in next) {
        // What cannot be given out was billed all the same.
        bill(line, next, request, prepared);
        throw next.failure;
      }
      is_ordered = ask.is_billed;
      ask = next;
      failures = 0;
      if (performance.now() > deadline_ms) {
        throw new UpstreamError('timeout', 'The answer took longer than the gateway allows');
      }
    } catch (error) {
      failures += 1;
      if (!is_ordered || isToldFailure(error)) throw error;
      if (mayAskAgain(error) && failures < limits.transcription_poll_failures_max && performance.now() < deadline_ms) {
        ask = { ...ask, wait_ms: limits.transcription_poll_ms_max };
        continue;
      }
      line.bill({ ...estimateSound(request.sound.duration_ms), audio_ms: paidMs(request.sound.duration_ms, facts) });
      throw error;
    }
  }
}

function modelOf(id: string, catalog: ModelSource): Model {
  const model = catalog.find(id);
  if (model === undefined) throw unknownModel(id, catalog, { status: 404 });
  const hears = model.endpoints.some(({ provider }) => {
    const found = catalog.provider(provider);
    return found !== undefined && transcriptionDialectOf(found)?.by_chat === true;
  });
  if (!transcribes(model) && !(hears && model.input_modalities.includes('audio'))) {
    throw new GatewayError(404, `${id} does not transcribe audio`);
  }
  return model;
}

/** Why an endpoint cannot transcribe: models for that alone are asked by wires of their own, those of chat by a chat. */
function refusal({ provider, model }: Candidate): string | undefined {
  const dialect = transcriptionDialectOf(provider);
  if (dialect === undefined || (!dialect.by_chat && !transcribes(model))) {
    return 'its provider is not known to transcribe audio with it';
  }
  return undefined;
}

/** What a client wrote beside the sound: that itself is not listened to. */
function wordsOf(
  request: TranscriptionRequest,
  asked: ChatRequest & { model: string },
): Words<PreparedTranscription, TranscriptionAnswer> {
  const { prompt, language } = request;
  const written = { ...(prompt === undefined ? {} : { prompt }), ...(language === undefined ? {} : { language }) };
  return {
    said: { ...written, provider: asked.provider } as JsonObject,
    retold(said) {
      const { provider, ...told } = said as Pick<TranscriptionRequest, 'prompt' | 'language'> &
        Pick<ChatRequest, 'provider'>;
      const heard = { ...asked, ...(provider == null ? {} : { provider }) };
      return { task: transcriptionTask({ ...request, ...told }, heard), request: heard };
    },
  };
}

/** A transcript in other words. Of what stands in their place the first part has it, and the parts that it reaches over are gone. */
function retold(answer: TranscriptionAnswer, shown: (texts: readonly string[]) => string[]): TranscriptionAnswer {
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

/** A request for the text of a sound as a task of the flow. */
export function transcriptionTask(
  request: TranscriptionRequest,
  asked: ChatRequest & { model: string },
): Task<PreparedTranscription, TranscriptionAnswer> {
  return {
    words: () => wordsOf(request, asked),
    models: (catalog) => ({ models: [modelOf(asked.model, catalog)], requested: asked.model }),
    refuses: refusal,
    prepare: (candidate) => prepare(request, asked, candidate),
    measure: (prepared, _output_tokens, mode) => measured(prepared, request, mode),
    async send(prepared, line) {
      const answer = await send(prepared, request, line);
      bill(line, answer, request, prepared);
      return answer;
    },
    retell: retold,
  };
}
