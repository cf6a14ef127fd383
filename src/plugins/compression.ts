import type { Endpoint } from '../catalog/model.ts';
import { GatewayError } from '../errors.ts';
import type { Call } from '../inference/call.ts';
import { ESTIMATE_MARGIN } from '../inference/money/measure.ts';
import { estimatePrompt } from '../inference/money/meter.ts';
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

/** What an endpoint has room for. */
interface Space {
  prompt_tokens: number;
  /** What is left for the answer. */
  output_tokens: number;
  messages: number;
}

/** What counting a prompt showed: how our own count of it is to be multiplied. */
interface Counted {
  scale: number;
}

/** What an upstream's own template adds to a prompt. */
const TEMPLATE_TOKENS = 64;
/** What is shortened is counted again, and where it is still too long shortened more, so often. */
const RECOUNTS_MAX = 4;

/** The output bound that a request names; undefined: none. */
function outputBound({ max_completion_tokens, max_tokens }: ChatRequest): number | undefined {
  return max_completion_tokens ?? max_tokens ?? undefined;
}

function spaceOf({ endpoint, ...candidate }: Candidate, request: ChatRequest): Space {
  const contextTokens = endpoint.context_length ?? Number.POSITIVE_INFINITY;
  const wanted = Math.min(
    outputBound(request) ?? Math.min(limits.compressed_output_tokens, contextTokens / limits.compressed_output_divisor),
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

/** Our count of prompts that have most of their messages in common: each text is looked at once. */
class Estimates {
  readonly #weights = new WeakMap<Message, number>();

  of(message: Message): number {
    let weight = this.#weights.get(message);
    if (weight === undefined) {
      weight = estimatePrompt({ messages: [message] }) - NOTHING;
      this.#weights.set(message, weight);
    }
    return weight;
  }

  /** Of what stands beside the messages. */
  beside(request: ChatRequest): number {
    return estimatePrompt({ ...request, messages: [] });
  }

  all(request: ChatRequest): number {
    return request.messages.reduce((sum, message) => sum + this.of(message), this.beside(request));
  }

  compress(request: ChatRequest, { prompt_tokens, messages }: Space, { scale }: Counted): Compressed | undefined {
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

/** Shortens prompts for endpoints that have no room for them, by the plugin's rules at the public service. */
export function createCompression(tokenizer: Pick<Tokenizer, 'count'>): Adapter {
  return (call) => {
    const wish = compressionOf(call.request);
    return wish === false ? undefined : new CallCompression(call, wish, tokenizer);
  };
}

/** One call's prompt at the endpoints that it is tried at. A class and not closures: there is one for nearly every call, and most have nothing to do. */
class CallCompression implements CallAdapter {
  readonly #call: Call;
  readonly #wish: boolean | undefined;
  readonly #tokenizer: Pick<Tokenizer, 'count'>;
  /** What was counted for endpoints so far; undefined: nothing. */
  #found: Map<Endpoint, Counted | undefined> | undefined;
  #estimated: Estimates | undefined;
  #stage: Stage | undefined;

  constructor(call: Call, wish: boolean | undefined, tokenizer: Pick<Tokenizer, 'count'>) {
    this.#call = call;
    this.#wish = wish;
    this.#tokenizer = tokenizer;
  }

  get #estimates(): Estimates {
    this.#estimated ??= new Estimates();
    return this.#estimated;
  }

  #isFor(candidate: Candidate): boolean {
    return isShortenedFor(candidate.endpoint, this.#wish) && isTextModel(candidate);
  }

  ready(candidate: Candidate): Promise<void> | undefined {
    const { endpoint } = candidate;
    if (!this.#isFor(candidate) || this.#found?.has(endpoint) === true) return undefined;
    const { request } = this.#call;
    const { prompt_tokens, messages } = spaceOf(candidate, request);
    // Our count is not wrong by so much.
    if (request.messages.length <= messages && this.#estimates.all(request) * 2 < prompt_tokens) return undefined;
    return this.#count(request, candidate).then((counted) => {
      this.#found ??= new Map();
      this.#found.set(endpoint, counted);
    });
  }

  fit(given: ChatRequest, candidate: Candidate): Fitted {
    const counted = this.#found?.get(candidate.endpoint) ?? this.#guessed(given, candidate);
    if (counted === undefined) {
      if (this.#stage !== undefined) this.#tell(undefined);
      return { request: given, report: [] };
    }
    const compressed = this.#estimates.compress(given, spaceOf(candidate, given), counted);
    if (compressed === undefined) throw tooLong(candidate, this.#call);
    this.#tell(compressed);
    const report: Report[] = [{ kind: 'changed', field: 'messages', reason: toldOf(compressed, given) }];
    const fitted = { ...given, messages: [...compressed.messages] };
    return { request: withinSpace(fitted, spaceOf(candidate, given), report), report };
  }

  /** The tokens of a prompt by the model's own tokenizer, else by our count with a margin. */
  async #tokensOf(request: ChatRequest, candidate: Candidate): Promise<number> {
    const estimated = this.#estimates.all(request);
    if (estimated > limits.tokenized_chars_max) return estimated * ESTIMATE_MARGIN;
    const texts: string[] = [];
    const otherTokens = estimatePrompt(request, (text) => {
      texts.push(text);
      return 0;
    });
    const counted = await this.#tokenizer.count(texts.join('\n'), candidate);
    return counted === undefined ? estimated * ESTIMATE_MARGIN : counted + otherTokens;
  }

  /** Undefined: the prompt fits as it is. */
  async #count(request: ChatRequest, candidate: Candidate): Promise<Counted | undefined> {
    const space = spaceOf(candidate, request);
    const tokens = await this.#tokensOf(request, candidate);
    if (tokens <= space.prompt_tokens && request.messages.length <= space.messages) return undefined;
    let scale = tokens / this.#estimates.all(request);
    for (let tries = 0; tries < RECOUNTS_MAX; tries += 1) {
      const found = this.#estimates.compress(request, space, { scale });
      if (found === undefined) break;
      const left = await this.#tokensOf({ ...request, messages: [...found.messages] }, candidate);
      if (left <= space.prompt_tokens) break;
      scale *= (left / space.prompt_tokens) * 1.02;
    }
    return { scale };
  }

  /** For what was not counted: what was added to the prompt since, such as files and what tools said. */
  #guessed(given: ChatRequest, candidate: Candidate): Counted | undefined {
    if (given === this.#call.request || !this.#isFor(candidate)) return undefined;
    const { prompt_tokens, messages } = spaceOf(candidate, given);
    const fits = this.#estimates.all(given) * ESTIMATE_MARGIN <= prompt_tokens && given.messages.length <= messages;
    return fits ? undefined : { scale: ESTIMATE_MARGIN };
  }

  /** Of the endpoint that was tried last: of those before it nothing came. */
  #tell(compressed: Compressed | undefined): void {
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
function withinSpace(request: ChatRequest, { output_tokens }: Space, report: Report[]): ChatRequest {
  const fitted = { ...request };
  for (const field of ['max_completion_tokens', 'max_tokens'] as const) {
    if ((fitted[field] ?? 0) <= output_tokens) continue;
    fitted[field] = output_tokens;
    report.push({ kind: 'clamped', field, reason: `the endpoint has room for ${output_tokens} beside the prompt` });
  }
  return fitted;
}

function toldOf({ messages, cut }: Compressed, { messages: all }: ChatRequest): string {
  return `the endpoint has no room for the whole prompt: ${all.length - messages.length} messages from the middle were removed, ${cut} were shortened`;
}
