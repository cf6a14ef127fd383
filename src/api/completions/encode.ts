import type { GatewayError } from '../../errors.ts';
import type { SentBody, Served, StreamEnd, WholeAnswer } from '../../inference/events.ts';
import { type AnswerUsage, NO_USAGE } from '../../inference/money/settlement.ts';
import type { ChatChunk, Message } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { metadataJson, metadataMembers } from '../../schemas/routing-metadata.ts';
import { choiceError } from '../shared/error-type.ts';
import { textFinish } from '../shared/text-finish.ts';
import { failedProvider } from '../shared/unanswered.ts';
import { createLogprobs } from './logprobs.ts';

/** What every object of one answer carries. */
export interface Envelope {
  id: string;
  /** Unix seconds. */
  created: number;
  /** The model that was asked for: answers name the one that gave them. */
  model: string;
  hide_reasoning: boolean;
  /** Whether log probabilities were asked for. */
  tells_logprobs: boolean;
  /** Where there are several, they fail alone, and the answer tells their generations. */
  prompts: readonly { generation_id: string; echo: string }[];
}

/** How one prompt was answered. */
export type PromptAnswer = { answer: WholeAnswer } | { error: GatewayError };

const round = (usd: number) => Math.round(usd * 1e9) / 1e9;

/** Adds up what has the same form: counts, and costs to the nano-USD. What one of them does not tell is not told. */
function sumUsage(all: readonly AnswerUsage[]): AnswerUsage | undefined {
  const [first, ...others] = all;
  if (first === undefined) return undefined;
  const add = (a: unknown, b: unknown): unknown => {
    if (typeof a === 'number' && typeof b === 'number') return Number.isInteger(a + b) ? a + b : round(a + b);
    if (typeof a === 'boolean') return a || b;
    if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === null ? a : undefined;
    const entries = Object.entries(a).map(([name, value]) => [name, add(value, (b as JsonObject)[name])]);
    return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
  };
  return others.reduce((sum, usage) => add(sum, usage) as AnswerUsage, first);
}

function textOf({ content, refusal }: Message): string {
  const text = Array.isArray(content)
    ? content.map((part) => (part.type === 'text' ? part.text : '')).join('')
    : (content ?? '');
  return text + (refusal ?? '');
}

function failedChoice(index: number, error: GatewayError): JsonObject {
  const native = error.metadata?.['provider_code'];
  return {
    index,
    text: '',
    logprobs: null,
    finish_reason: 'error',
    native_finish_reason: typeof native === 'string' ? native : null,
    error: choiceError(error) as unknown as JsonObject,
  };
}

/** How the prompts were routed: of one, as in chat; of several, with the generation of each. */
function routingOf({ prompts }: Envelope, metadata: readonly (Record<string, unknown> | null | undefined)[]): object {
  if (prompts.length === 1) return metadataMembers(metadata[0]);
  const generations = prompts.map(({ generation_id: id }, index) => {
    const shown = metadata[index];
    return { index, id, ...metadataMembers(shown) };
  });
  return { generations };
}

/** The whole answer: one choice a prompt, in order. At least one of them was answered. */
export function completionOf(answers: readonly PromptAnswer[], envelope: Envelope): Record<string, unknown> {
  const { id, created, prompts } = envelope;
  const told = answers.flatMap((one) => ('answer' in one ? one.answer : []));
  const [lead] = told;
  const choices = answers.map((one, index) => {
    if ('error' in one) return failedChoice(index, one.error);
    const { message, logprobs, finish_reason, native_finish_reason, error } = one.answer.completion.choices[0];
    const { reasoning } = message;
    return {
      index,
      text: (prompts[index]?.echo ?? '') + textOf(message),
      ...(reasoning && !envelope.hide_reasoning ? { reasoning } : {}),
      logprobs: envelope.tells_logprobs ? createLogprobs()(logprobs) : null,
      finish_reason: textFinish(finish_reason),
      native_finish_reason,
      ...(error ? { error } : {}),
    };
  });
  return {
    id,
    object: 'text_completion',
    created,
    model: lead?.served.model ?? envelope.model,
    provider: lead?.served.provider,
    system_fingerprint: lead?.completion.system_fingerprint ?? null,
    service_tier: lead?.completion.service_tier ?? null,
    choices,
    usage: sumUsage(told.map(({ usage }) => usage)) ?? NO_USAGE,
    ...routingOf(
      envelope,
      answers.map((one) => ('answer' in one ? one.answer.metadata : one.error.gateway_metadata)),
    ),
  };
}

/** Writes a stream whose pieces tell which prompt they answer. */
export interface CompletionStream {
  open(index: number, served: Served): string;
  debug(sent: SentBody): string;
  chunks(index: number, chunks: readonly ChatChunk[]): string;
  /** The end of one choice. */
  end(index: number, end: StreamEnd): string;
  /** A prompt that nobody answered, among others that were. */
  failedChoice(index: number, error: GatewayError): string;
  /** The end of the stream. */
  close(): string;
  /** All of a stream that failed after its 200 and before anything of it was told. */
  failed(error: GatewayError, user_id: string | null): string;
}

/** Fixed parts are made once; a piece of text costs what chat's does. */
export function createCompletionStream(envelope: Envelope): CompletionStream {
  const { id, created, model: asked, prompts, hide_reasoning, tells_logprobs } = envelope;
  const is_batch = prompts.length > 1;
  const heads: string[] = [];
  const logprobs = prompts.map(() => createLogprobs());
  const usages: AnswerUsage[] = [];
  const finished = new Set<number>();
  let service_tier: string | null = null;
  const metadata: (Record<string, unknown> | null | undefined)[] = [];
  const headOf = ({ model, provider }: { model: string; provider?: string | undefined }) => {
    const shown = provider === undefined ? '' : `,"provider":${JSON.stringify(provider)}`;
    return `data: {"id":${JSON.stringify(id)},"object":"text_completion","created":${created},"model":${JSON.stringify(model)}${shown}`;
  };
  const unserved = headOf({ model: asked });
  const failedHead = (error: GatewayError) => headOf({ model: asked, provider: failedProvider(error) });
  let last_head = unserved;
  const choice = (head: string, json: JsonObject) => `${head},"choices":[${JSON.stringify(json)}]}\n\n`;
  const usageEvent = (head: string, usage: object, more: string) =>
    `${head},"choices":[],"usage":${JSON.stringify(usage)}${more}}\n\ndata: [DONE]\n\n`;

  function piece(index: number, head: string, chunk: ChatChunk): string {
    const { content, refusal, reasoning } = chunk.delta;
    const text = `${content ?? ''}${refusal ?? ''}`;
    const thought = reasoning && !hide_reasoning ? reasoning : undefined;
    const told = tells_logprobs ? (logprobs[index]?.(chunk.logprobs) ?? null) : null;
    const finish = textFinish(chunk.finish_reason ?? null);
    service_tier = chunk.service_tier ?? service_tier;
    if (text === '' && thought === undefined && told === null && finish === null) return '';
    if (finish !== null) finished.add(index);
    const fingerprint = chunk.system_fingerprint
      ? `,"system_fingerprint":${JSON.stringify(chunk.system_fingerprint)}`
      : '';
    const shown = thought === undefined ? '' : `,"reasoning":${JSON.stringify(thought)}`;
    const error = chunk.error ? `,"error":${JSON.stringify(chunk.error)}` : '';
    const native = JSON.stringify(finish === null ? null : (chunk.native_finish_reason ?? null));
    return `${head}${fingerprint},"choices":[{"index":${index},"text":${JSON.stringify(text)}${shown},"logprobs":${JSON.stringify(told)},"finish_reason":${JSON.stringify(finish)},"native_finish_reason":${native}${error}}]}\n\n`;
  }

  function failAlone(index: number, error: GatewayError): string {
    if (finished.has(index)) return '';
    finished.add(index);
    return choice(heads[index] ?? failedHead(error), failedChoice(index, error));
  }

  return {
    open(index, served) {
      const is_first = heads[index] === undefined;
      const head = headOf(served);
      heads[index] = head;
      last_head = head;
      const echo = prompts[index]?.echo ?? '';
      if (!is_first || echo === '') return '';
      return choice(head, { index, text: echo, logprobs: null, finish_reason: null, native_finish_reason: null });
    },
    debug: ({ served, body: echo_upstream_body }) =>
      `${headOf(served)},"choices":[],"debug":${JSON.stringify({ echo_upstream_body })}}\n\n`,
    chunks(index, chunks) {
      let text = '';
      for (const chunk of chunks) text += piece(index, heads[index] ?? unserved, chunk);
      return text;
    },
    end(index, { usage, metadata: shown, error }) {
      usages.push(usage);
      metadata[index] = shown;
      if (error === undefined) return '';
      return is_batch ? failAlone(index, error) : failure(heads[index] ?? unserved, index, error);
    },
    failedChoice(index, error) {
      metadata[index] = error.gateway_metadata;
      return failAlone(index, error);
    },
    close() {
      const shown = JSON.stringify(routingOf(envelope, metadata)).slice(1, -1);
      const tier = `,"service_tier":${JSON.stringify(service_tier)}`;
      return usageEvent(last_head + tier, sumUsage(usages) ?? NO_USAGE, shown && `,${shown}`);
    },
    failed(error) {
      const shown = metadataJson(error.gateway_metadata);
      const head = failedHead(error);
      return failure(head, 0, error) + usageEvent(`${head},"service_tier":null`, NO_USAGE, shown);
    },
  };

  /** The failure of the only prompt: the error stands beside its choice, and first, as in chat. */
  function failure(head: string, index: number, error: GatewayError): string {
    const { error: told, ...json } = failedChoice(index, error);
    return choice(`data: {"error":${JSON.stringify(told)},${head.slice('data: {'.length)}`, json);
  }
}
