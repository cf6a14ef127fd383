import type { Endpoint } from '../catalog/model.ts';
import { GatewayError } from '../errors.ts';
import type { Call } from '../inference/call.ts';
import { ESTIMATE_MARGIN } from '../inference/money/measure.ts';
import { type CountedTexts, estimatePrompt, promptTexts } from '../inference/money/meter.ts';
import type { Tokenizer } from '../inference/money/tokenizer.ts';
import { wireOf } from '../inference/plan/planner.ts';
import type { Adapter, CallAdapter, Fitted } from '../inference/prepare/adapters.ts';
import { inClientsWords } from '../inference/prepare/client-fields.ts';
import { limits } from '../limits.ts';
import type { Report } from '../providers/dialect.ts';
import { dialectOf } from '../providers/dialects.ts';
import { compressionOf, isShortenedFor, promptTokensMax } from '../routing/needs.ts';
import type { Candidate } from '../routing/plan.ts';
import type { ChatRequest, Message } from '../schemas/inner.ts';
import type { Stage } from '../schemas/routing-metadata.ts';
import { type Compressed, compressMiddleOut } from './middle-out.ts';

/** Output tokens for which a shortened prompt leaves room if the request has no bound, and their largest share of the context. */
const COMPRESSED_OUTPUT_TOKENS = 1_024;
const COMPRESSED_OUTPUT_DIVISOR = 4;

/** The bounds of an endpoint for a prompt. */
interface PromptBounds {
  prompt_tokens: number;
  /** Tokens left for the answer. */
  output_tokens: number;
  messages: number;
}

/** The factor from our estimate of a prompt to its counted tokens. */
interface EstimateScale {
  scale: number;
}

/** Tokens that an upstream's template adds to a prompt. */
const TEMPLATE_TOKENS = 64;
/** How many times a shortened prompt is counted again and shortened more. */
const RECOUNTS_MAX = 4;

/** The output limit of a request. Undefined if it has none. */
function outputBound({ max_completion_tokens, max_tokens }: ChatRequest): number | undefined {
  return max_completion_tokens ?? max_tokens ?? undefined;
}

function boundsOf({ endpoint, ...candidate }: Candidate, request: ChatRequest): PromptBounds {
  const contextTokens = endpoint.context_length ?? Number.POSITIVE_INFINITY;
  const wanted = Math.min(
    outputBound(request) ?? Math.min(COMPRESSED_OUTPUT_TOKENS, contextTokens / COMPRESSED_OUTPUT_DIVISOR),
    endpoint.max_completion_tokens ?? Number.POSITIVE_INFINITY,
    contextTokens / 2,
  );
  const promptTokens = Math.min(promptTokensMax(endpoint), Math.floor(contextTokens - wanted)) - TEMPLATE_TOKENS;
  const { messagesMax = Number.POSITIVE_INFINITY } = dialectOf(wireOf({ endpoint, ...candidate })).facts;
  return {
    prompt_tokens: promptTokens,
    output_tokens: Math.floor(wanted),
    messages: messagesMax,
  };
}

/** Estimates of prompts that share most messages: each message is estimated once. */
class Estimates {
  readonly #weights = new WeakMap<Message, number>();
  /** The texts of all messages together are bounded like those of one prompt. */
  readonly #counted: CountedTexts = { chars: 0, tokens: 0 };

  of(message: Message): number {
    let weight = this.#weights.get(message);
    if (weight === undefined) {
      weight = estimatePrompt({ messages: [message] }, this.#counted) - NOTHING;
      this.#weights.set(message, weight);
    }
    return weight;
  }

  /** The estimate of everything but the messages. */
  beside(request: ChatRequest): number {
    return estimatePrompt({ ...request, messages: [] });
  }

  all(request: ChatRequest): number {
    return request.messages.reduce((sum, message) => sum + this.of(message), this.beside(request));
  }

  compress(
    request: ChatRequest,
    { prompt_tokens, messages }: PromptBounds,
    { scale }: EstimateScale,
  ): Compressed | undefined {
    return compressMiddleOut(request.messages, {
      tokens_max: prompt_tokens - this.beside(request) * scale,
      messages_max: messages,
      weigh: (message) => this.of(message) * scale,
    });
  }
}

const NOTHING = estimatePrompt({ messages: [] });

function tooLong({ endpoint }: Candidate, call: Call): GatewayError {
  const most = promptTokensMax(endpoint);
  const message = `messages: the prompt is longer than the ${most} tokens that ${endpoint.model} reads here, and cannot be shortened enough; send a shorter one`;
  return inClientsWords(new GatewayError(400, message), call);
}

function isTextModel({ model }: Candidate): boolean {
  return model.output_modalities.includes('text');
}

/** Shortens prompts that are too long for an endpoint, by the rules of the plugin in the public API. */
export function createCompression(tokenizer: Pick<Tokenizer, 'count'>): Adapter {
  return {
    create(call, { candidates }) {
      const requested = compressionOf(call.request);
      for (const candidate of candidates) {
        if (isFor(candidate, requested)) return new CallCompression(call, requested, tokenizer);
      }
      return undefined;
    },
  };
}

/** Whether prompts are shortened for an endpoint. */
function isFor(candidate: Candidate, requested: boolean | undefined): boolean {
  return isShortenedFor(candidate.endpoint, requested) && isTextModel(candidate);
}

/** Fits one call's prompt to its endpoints. */
class CallCompression implements CallAdapter {
  readonly #call: Call;
  readonly #requested: boolean | undefined;
  readonly #tokenizer: Pick<Tokenizer, 'count'>;
  /** The counts by endpoint. Undefined if nothing was counted. */
  #counts: Map<Endpoint, EstimateScale | undefined> | undefined;
  #estimated: Estimates | undefined;
  #stage: Stage | undefined;

  constructor(call: Call, requested: boolean | undefined, tokenizer: Pick<Tokenizer, 'count'>) {
    this.#call = call;
    this.#requested = requested;
    this.#tokenizer = tokenizer;
  }

  get #estimates(): Estimates {
    this.#estimated ??= new Estimates();
    return this.#estimated;
  }

  ready(candidate: Candidate): Promise<void> | undefined {
    const { endpoint } = candidate;
    if (!isFor(candidate, this.#requested) || this.#counts?.has(endpoint) === true) return undefined;
    const { request } = this.#call;
    const { prompt_tokens, messages } = boundsOf(candidate, request);
    // The estimate is never wrong by a factor of two.
    if (request.messages.length <= messages && this.#estimates.all(request) * 2 < prompt_tokens) return undefined;
    return this.#count(request, candidate).then((counted) => {
      this.#counts ??= new Map();
      this.#counts.set(endpoint, counted);
    });
  }

  fit(prompt: ChatRequest, candidate: Candidate): Fitted {
    const counted = this.#counts?.get(candidate.endpoint) ?? this.#assumed(prompt, candidate);
    if (counted === undefined) {
      if (this.#stage !== undefined) this.#addStage(undefined);
      return { request: prompt, report: [] };
    }
    const compressed = this.#estimates.compress(prompt, boundsOf(candidate, prompt), counted);
    if (compressed === undefined) throw tooLong(candidate, this.#call);
    this.#addStage(compressed);
    const report: Report[] = [{ kind: 'changed', field: 'messages', reason: reasonOf(compressed, prompt) }];
    const fitted = { ...prompt, messages: [...compressed.messages] };
    return { request: withinBounds(fitted, boundsOf(candidate, prompt), report), report };
  }

  /** The tokens of a prompt by the model's tokenizer, otherwise by our estimate with a margin. */
  async #tokensOf(request: ChatRequest, candidate: Candidate): Promise<number> {
    const estimated = this.#estimates.all(request);
    if (estimated > limits.tokenized_chars_max) return estimated * ESTIMATE_MARGIN;
    const { texts, tokens: otherTokens } = promptTexts(request);
    const counted = await this.#tokenizer.count(texts.join('\n'), candidate);
    return counted === undefined ? estimated * ESTIMATE_MARGIN : counted + otherTokens;
  }

  /** Counts a prompt. Undefined if it fits unchanged. */
  async #count(request: ChatRequest, candidate: Candidate): Promise<EstimateScale | undefined> {
    const space = boundsOf(candidate, request);
    const tokens = await this.#tokensOf(request, candidate);
    if (tokens <= space.prompt_tokens && request.messages.length <= space.messages) return undefined;
    let scale = tokens / this.#estimates.all(request);
    for (let tries = 0; tries < RECOUNTS_MAX; tries += 1) {
      const compressed = this.#estimates.compress(request, space, { scale });
      if (compressed === undefined) break;
      const tokensLeft = await this.#tokensOf({ ...request, messages: [...compressed.messages] }, candidate);
      if (tokensLeft <= space.prompt_tokens) break;
      scale *= (tokensLeft / space.prompt_tokens) * 1.02;
    }
    return { scale };
  }

  /** The assumed scale of a prompt that was not counted, since files or tool results were added later. Undefined if it fits. */
  #assumed(prompt: ChatRequest, candidate: Candidate): EstimateScale | undefined {
    if (prompt === this.#call.request || !isFor(candidate, this.#requested)) return undefined;
    const { prompt_tokens, messages } = boundsOf(candidate, prompt);
    const fits = this.#estimates.all(prompt) * ESTIMATE_MARGIN <= prompt_tokens && prompt.messages.length <= messages;
    return fits ? undefined : { scale: ESTIMATE_MARGIN };
  }

  /** Replaces the stage by that of the endpoint tried last: earlier attempts failed. */
  #addStage(compressed: Compressed | undefined): void {
    const { request, stages } = this.#call;
    if (this.#stage !== undefined && stages.includes(this.#stage)) stages.splice(stages.indexOf(this.#stage), 1);
    if (compressed === undefined) return;
    const { messages, cut } = compressed;
    this.#stage = {
      type: 'context_compression',
      name: 'context-compression',
      data: {
        engine: 'middle-out',
        input_type: request.ext?.client.hasPrompt ? 'prompt' : 'messages',
        original_count: request.messages.length,
        compressed_count: messages.length,
        cut_count: cut,
      },
    };
    stages.push(this.#stage);
  }
}

/** An output bound that leaves the prompt less than half of the context is lowered to that half. */
function withinBounds(request: ChatRequest, { output_tokens }: PromptBounds, report: Report[]): ChatRequest {
  const fitted = { ...request };
  for (const field of ['max_completion_tokens', 'max_tokens'] as const) {
    if ((fitted[field] ?? 0) <= output_tokens) continue;
    fitted[field] = output_tokens;
    report.push({ kind: 'clamped', field, reason: `the endpoint has room for ${output_tokens} beside the prompt` });
  }
  return fitted;
}

function reasonOf({ messages, cut }: Compressed, { messages: all }: ChatRequest): string {
  return `the endpoint has no room for the whole prompt: ${all.length - messages.length} messages from the middle were removed, ${cut} were shortened`;
}
