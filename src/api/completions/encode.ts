import type { GatewayError } from '../../errors.ts';
import type { SentBody, Served, StreamEnd, WholeAnswer } from '../../inference/events.ts';
import { type AnswerUsage, NO_USAGE } from '../../inference/money/answer-usage.ts';
import type { ChatChunk, Message } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { metadataJson, metadataMembers } from '../../schemas/routing-metadata.ts';
import { choiceError } from '../shared/error-type.ts';
import { textFinish } from '../shared/text-finish.ts';
import { failedProvider } from '../shared/unanswered.ts';
import { type CompletionLogprobs, createLogprobs, wholeLogprobs } from './logprobs.ts';

/** Fields of every object of one answer, and how it is encoded. */
export interface CompletionAnswerFields {
  id: string;
  /** Unix seconds. */
  created: number;
  /** The requested model; answers name the model that answered. */
  model: string;
  hide_reasoning: boolean;
  /** Whether the request wants log probabilities. */
  has_logprobs: boolean;
  /** If there are several, they fail separately, and the answer lists their generations. */
  prompts: readonly { generation_id: string; echo: string }[];
}

/** The answer to one prompt, or its failure. */
export type PromptAnswer = { answer: WholeAnswer } | { error: GatewayError };

const round = (usd: number) => Math.round(usd * 1e9) / 1e9;

/** The sum of several usages of the same form: counts, and costs to the nano-USD. A field that is missing in one is omitted. */
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

/** The routing of the prompts: for one as in chat; for several with the generation of each. */
function routingOf(
  { prompts }: CompletionAnswerFields,
  metadata: readonly (Record<string, unknown> | null | undefined)[],
): object {
  if (prompts.length === 1) return metadataMembers(metadata[0]);
  const generations = prompts.map(({ generation_id: id }, index) => {
    const shown = metadata[index];
    return { index, id, ...metadataMembers(shown) };
  });
  return { generations };
}

/** The probabilities of each answer's tokens, in the form of this API. Yields between many tokens. */
export function* logprobsOf(
  answers: readonly PromptAnswer[],
): Generator<void, (CompletionLogprobs | null)[], undefined> {
  const converted: (CompletionLogprobs | null)[] = [];
  for (const answer of answers) {
    const { logprobs } = 'answer' in answer ? answer.answer.completion.choices[0] : {};
    converted.push(yield* wholeLogprobs(logprobs));
  }
  return converted;
}

/** The whole answer: one choice per prompt, in order. At least one prompt was answered. `logprobs` has those of each if they were requested. */
export function completionOf(
  answers: readonly PromptAnswer[],
  fields: CompletionAnswerFields,
  logprobs: readonly (CompletionLogprobs | null)[] = [],
): Record<string, unknown> {
  const { id, created, prompts } = fields;
  const completed = answers.flatMap((answer) => ('answer' in answer ? answer.answer : []));
  const [lead] = completed;
  const choices = answers.map((answer, index) => {
    if ('error' in answer) return failedChoice(index, answer.error);
    const { message, finish_reason, native_finish_reason, error } = answer.answer.completion.choices[0];
    const { reasoning } = message;
    return {
      index,
      text: (prompts[index]?.echo ?? '') + textOf(message),
      ...(reasoning && !fields.hide_reasoning ? { reasoning } : {}),
      logprobs: logprobs[index] ?? null,
      finish_reason: textFinish(finish_reason),
      native_finish_reason,
      ...(error ? { error } : {}),
    };
  });
  return {
    id,
    object: 'text_completion',
    created,
    model: lead?.served.model ?? fields.model,
    provider: lead?.served.provider,
    system_fingerprint: lead?.completion.system_fingerprint ?? null,
    service_tier: lead?.completion.service_tier ?? null,
    choices,
    usage: sumUsage(completed.map(({ usage }) => usage)) ?? NO_USAGE,
    ...routingOf(
      fields,
      answers.map((answer) => ('answer' in answer ? answer.answer.metadata : answer.error.gateway_metadata)),
    ),
  };
}

/** Writes a stream whose chunks name the prompt that they answer. */
export interface CompletionStream {
  open(index: number, served: Served): string;
  debug(sent: SentBody): string;
  chunks(index: number, chunks: readonly ChatChunk[]): string;
  /** The end of one choice. */
  end(index: number, end: StreamEnd): string;
  /** The choice of a prompt that failed while others were answered. */
  failedChoice(index: number, error: GatewayError): string;
  /** The end of the stream. */
  close(): string;
  /** The whole text of a stream that failed after its 200 and before its first chunk. */
  failed(error: GatewayError, userId: string | null): string;
}

/** Makes the writer of a stream. Fixed parts are made once. */
export function createCompletionStream(fields: CompletionAnswerFields): CompletionStream {
  const { id, created, model: requested, prompts, hide_reasoning, has_logprobs } = fields;
  const isBatch = prompts.length > 1;
  const heads: string[] = [];
  const logprobs = prompts.map(() => createLogprobs());
  const usages: AnswerUsage[] = [];
  const finished = new Set<number>();
  let serviceTier: string | null = null;
  const metadata: (Record<string, unknown> | null | undefined)[] = [];
  const headOf = ({ model, provider }: { model: string; provider?: string | undefined }) => {
    const shown = provider === undefined ? '' : `,"provider":${JSON.stringify(provider)}`;
    return `data: {"id":${JSON.stringify(id)},"object":"text_completion","created":${created},"model":${JSON.stringify(model)}${shown}`;
  };
  const unserved = headOf({ model: requested });
  const failedHead = (error: GatewayError) => headOf({ model: requested, provider: failedProvider(error) });
  let lastHead = unserved;
  const choice = (head: string, json: JsonObject) => `${head},"choices":[${JSON.stringify(json)}]}\n\n`;
  const usageEvent = (head: string, usage: object, more: string) =>
    `${head},"choices":[],"usage":${JSON.stringify(usage)}${more}}\n\ndata: [DONE]\n\n`;

  function piece(index: number, head: string, chunk: ChatChunk): string {
    const { content, refusal, reasoning } = chunk.delta;
    const text = `${content ?? ''}${refusal ?? ''}`;
    const thought = reasoning && !hide_reasoning ? reasoning : undefined;
    const likelihood = has_logprobs ? (logprobs[index]?.(chunk.logprobs) ?? null) : null;
    const finish = textFinish(chunk.finish_reason ?? null);
    serviceTier = chunk.service_tier ?? serviceTier;
    if (text === '' && thought === undefined && likelihood === null && finish === null) return '';
    if (finish !== null) finished.add(index);
    const fingerprint = chunk.system_fingerprint
      ? `,"system_fingerprint":${JSON.stringify(chunk.system_fingerprint)}`
      : '';
    const shown = thought === undefined ? '' : `,"reasoning":${JSON.stringify(thought)}`;
    const error = chunk.error ? `,"error":${JSON.stringify(chunk.error)}` : '';
    const native = JSON.stringify(finish === null ? null : (chunk.native_finish_reason ?? null));
    return `${head}${fingerprint},"choices":[{"index":${index},"text":${JSON.stringify(text)}${shown},"logprobs":${JSON.stringify(likelihood)},"finish_reason":${JSON.stringify(finish)},"native_finish_reason":${native}${error}}]}\n\n`;
  }

  function failAlone(index: number, error: GatewayError): string {
    if (finished.has(index)) return '';
    finished.add(index);
    return choice(heads[index] ?? failedHead(error), failedChoice(index, error));
  }

  return {
    open(index, served) {
      const isFirst = heads[index] === undefined;
      const head = headOf(served);
      heads[index] = head;
      lastHead = head;
      const echo = prompts[index]?.echo ?? '';
      if (!isFirst || echo === '') return '';
      return choice(head, { index, text: echo, logprobs: null, finish_reason: null, native_finish_reason: null });
    },
    debug: ({ served, body: echoUpstreamBody }) =>
      `${headOf(served)},"choices":[],"debug":${JSON.stringify({ echo_upstream_body: echoUpstreamBody })}}\n\n`,
    chunks(index, chunks) {
      let text = '';
      for (const chunk of chunks) text += piece(index, heads[index] ?? unserved, chunk);
      return text;
    },
    end(index, { usage, metadata: shown, error }) {
      usages.push(usage);
      metadata[index] = shown;
      if (error === undefined) return '';
      return isBatch ? failAlone(index, error) : failure(heads[index] ?? unserved, index, error);
    },
    failedChoice(index, error) {
      metadata[index] = error.gateway_metadata;
      return failAlone(index, error);
    },
    close() {
      const shown = JSON.stringify(routingOf(fields, metadata)).slice(1, -1);
      const tier = `,"service_tier":${JSON.stringify(serviceTier)}`;
      return usageEvent(lastHead + tier, sumUsage(usages) ?? NO_USAGE, shown && `,${shown}`);
    },
    failed(error) {
      const shown = metadataJson(error.gateway_metadata);
      const head = failedHead(error);
      return failure(head, 0, error) + usageEvent(`${head},"service_tier":null`, NO_USAGE, shown);
    },
  };

  /** The failure of the only prompt: the error is the first field beside the choice, as in chat. */
  function failure(head: string, index: number, error: GatewayError): string {
    const { error: details, ...json } = failedChoice(index, error);
    return choice(`data: {"error":${JSON.stringify(details)},${head.slice('data: {'.length)}`, json);
  }
}
