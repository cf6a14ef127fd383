import type { GatewayError } from '../../errors.ts';
import type { SentBody, Served, StreamEnd, WholeAnswer } from '../../inference/events.ts';
import { NO_USAGE } from '../../inference/money/answer-usage.ts';
import { isMeaningful } from '../../inference/money/meter.ts';
import type {
  Annotation,
  ChatChunk,
  Choice,
  Delta,
  FinishReason,
  Message,
  ReasoningDetail,
  ToolCall,
  UrlCitation,
} from '../../schemas/inner.ts';
import { metadataJson, metadataMembers } from '../../schemas/routing-metadata.ts';
import type { StreamEncoder } from '../shared/answer-call.ts';
import { choiceError } from '../shared/error-type.ts';
import { textFinish } from '../shared/text-finish.ts';
import { failedProvider } from '../shared/unanswered.ts';

/** Fields of every object of one answer, and how it is encoded. */
export interface ChatAnswerFields {
  id: string;
  /** Unix seconds. */
  created: number;
  /** The requested model; answers name the model that answered. */
  model: string;
  /** The number of choices that the request wants. Default: one. */
  choices?: number;
  /** The request had `functions`: a call is encoded as `function_call`. */
  function_form?: boolean;
  /** The request had `prompt`: choices carry `text`. */
  text_form: boolean;
  /** The client wants no reasoning in the answer. */
  hide_reasoning: boolean;
}

/** The public fields of a detail. Extensions are not sent. */
function publicDetail(detail: ReasoningDetail): Record<string, unknown> {
  const { type, format, id, index } = detail;
  const shared = {
    format: format ?? 'unknown',
    ...(id === undefined ? {} : { id }),
    ...(index === undefined ? {} : { index }),
  };
  switch (detail.type) {
    case 'reasoning.text':
      return {
        type,
        ...(detail.text === undefined ? {} : { text: detail.text }),
        ...(detail.signature === undefined ? {} : { signature: detail.signature }),
        ...shared,
      };
    case 'reasoning.summary':
      return { type, summary: detail.summary, ...shared };
    case 'reasoning.encrypted':
      return { type, data: detail.data, ...shared };
  }
}

function publicCall(call: ToolCall, index: number): Record<string, unknown> {
  const { name, arguments: text } = call.function;
  return { index, id: call.id, type: 'function', function: { name, arguments: text } };
}

function textOf(content: Message['content']): string {
  if (!Array.isArray(content)) return content ?? '';
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

function publicMessage(message: Message, hideReasoning: boolean): Record<string, unknown> {
  const text = textOf(message.content);
  const made: Record<string, unknown> = {
    role: 'assistant',
    // Content is text, as in streams, also if it is empty (the output bound was used up by reasoning): clients read its length.
    content: text === '' && message.refusal ? null : text,
    refusal: message.refusal ?? null,
    reasoning: hideReasoning ? null : (message.reasoning ?? null),
  };
  if (!hideReasoning && message.reasoning_details?.length) {
    made['reasoning_details'] = message.reasoning_details.map(publicDetail);
  }
  if (message.tool_calls?.length) made['tool_calls'] = message.tool_calls.map(publicCall);
  if (message.images?.length) made['images'] = message.images;
  if (message.audio) made['audio'] = message.audio;
  if (message.annotations?.length) made['annotations'] = message.annotations.map(publicAnnotation);
  return made;
}

/** Adds an empty title to a citation without one, which clients would otherwise ignore. */
function publicAnnotation(annotation: Annotation): Annotation {
  if (annotation.type !== 'url_citation') return annotation;
  const { url_citation } = annotation as UrlCitation;
  return url_citation.title == null ? { ...annotation, url_citation: { ...url_citation, title: '' } } : annotation;
}

function textChoice(choice: Choice, { hide_reasoning }: ChatAnswerFields): Record<string, unknown> {
  const { message, logprobs, error } = choice;
  const made: Record<string, unknown> = {
    index: choice.index,
    finish_reason: textFinish(choice.finish_reason),
    native_finish_reason: choice.native_finish_reason,
  };
  if (error) made['error'] = error;
  made['logprobs'] = logprobs ?? null;
  made['text'] = textOf(message.content) + (message.refusal ?? '');
  if (message.reasoning && !hide_reasoning) made['reasoning'] = message.reasoning;
  return made;
}

/** The finish reason for clients of `functions`. */
function functionFinish<T extends string | null | undefined>(finishReason: T): T | 'function_call' {
  return finishReason === 'tool_calls' ? 'function_call' : finishReason;
}

/** A message with `function_call`, of which there is at most one. */
function functionMessage({ tool_calls, ...message }: Record<string, unknown>): Record<string, unknown> {
  const [call] = (tool_calls ?? []) as { function: { name: string; arguments: string } }[];
  return call === undefined ? message : { ...message, function_call: call.function };
}

function messageChoice(choice: Choice, { hide_reasoning, function_form }: ChatAnswerFields): Record<string, unknown> {
  const made: Record<string, unknown> = {
    index: choice.index,
    logprobs: choice.logprobs ?? null,
    finish_reason: function_form ? functionFinish(choice.finish_reason) : choice.finish_reason,
    native_finish_reason: choice.native_finish_reason,
  };
  if (choice.error) made['error'] = choice.error;
  const message = publicMessage(choice.message, hide_reasoning);
  made['message'] = function_form ? functionMessage(message) : message;
  return made;
}

/** The whole answer as the contract states it, field by field. */
export function completionOf(answer: WholeAnswer, fields: ChatAnswerFields): Record<string, unknown> {
  const { completion, served, usage, metadata } = answer;
  const written = fields.text_form ? textChoice : messageChoice;
  const made: Record<string, unknown> = {
    id: fields.id,
    object: 'chat.completion',
    created: fields.created,
    model: served.model,
    provider: served.provider,
    system_fingerprint: completion.system_fingerprint ?? null,
    service_tier: completion.service_tier ?? null,
    choices: completion.choices.map((choice) => written(choice, fields)),
    usage,
  };
  return metadata == null ? made : Object.assign(made, metadataMembers(metadata));
}

/** The whole answer as JSON text. */
export function encodeCompletion(answer: WholeAnswer, fields: ChatAnswerFields): string {
  return JSON.stringify(completionOf(answer, fields));
}

function frame(json: string): string {
  return `data: ${json}\n\n`;
}

const ROLE = '"role":"assistant",';

/** Encodes a stream of chunks, each in a few microseconds: fixed parts are made once. A class rather than closures, since every stream has one. */
export class ChatStreamEncoder implements StreamEncoder {
  readonly #fields: ChatAnswerFields;
  readonly #textForm: boolean;
  readonly #functionForm: boolean;
  readonly #hideReasoning: boolean;
  #head: string;
  /** Only in the first delta: OpenAI's SDK for Python concatenates it over all deltas. */
  #role = ROLE;
  #hasBegun = false;
  /** The choices that have begun, if there are several. */
  readonly #begunChoices: Set<number> | undefined;
  #serviceTier: string | null = null;

  constructor(fields: ChatAnswerFields) {
    this.#fields = fields;
    this.#textForm = fields.text_form;
    this.#functionForm = fields.function_form === true;
    this.#hideReasoning = fields.hide_reasoning;
    this.#head = headOf(fields, fields);
    this.#begunChoices = (fields.choices ?? 1) === 1 ? undefined : new Set();
  }

  open(served: Served): string {
    this.#head = headOf(this.#fields, served);
    return '';
  }

  debug({ served, body: echoUpstreamBody }: SentBody): string {
    return frame(
      `${headOf(this.#fields, served)},"choices":[],"debug":${JSON.stringify({ echo_upstream_body: echoUpstreamBody })}}`,
    );
  }

  chunks(chunks: readonly ChatChunk[]): string {
    let text = '';
    for (const chunk of chunks) {
      this.#serviceTier = chunk.service_tier ?? this.#serviceTier;
      if (this.#begunChoices !== undefined) this.#switchTo(this.#begunChoices, chunk.choice ?? 0);
      if (!chunk.delta.content && this.#isSilent(chunk)) continue;
      this.#hasBegun = true;
      const fingerprint = chunk.system_fingerprint
        ? `,"system_fingerprint":${JSON.stringify(chunk.system_fingerprint)}`
        : '';
      const tier = chunk.service_tier ? `,"service_tier":${JSON.stringify(chunk.service_tier)}` : '';
      const finish = chunk.finish_reason ? JSON.stringify(this.#finish(chunk.finish_reason)) : 'null';
      const native = chunk.native_finish_reason ? JSON.stringify(chunk.native_finish_reason) : 'null';
      const body = this.#textForm ? this.#textJson(chunk.delta) : `"delta":${this.#deltaJson(chunk.delta)}`;
      const logprobs = chunk.logprobs === undefined ? 'null' : JSON.stringify(chunk.logprobs);
      const error = chunk.error ? `,"error":${JSON.stringify(chunk.error)}` : '';
      const choice = `{"index":${chunk.choice ?? 0},${body},"finish_reason":${finish},"native_finish_reason":${native},"logprobs":${logprobs}${error}}`;
      text += `data: ${this.#head}${fingerprint}${tier},"choices":[${choice}]}\n\n`;
    }
    return text;
  }

  end({ usage, metadata, error }: StreamEnd): string {
    const failure = error ? frame(failureJson(this.#head, error, this.#textForm)) : '';
    const tier = `"service_tier":${JSON.stringify(this.#serviceTier)}`;
    const last = `${this.#head},${tier},"choices":[],"usage":${JSON.stringify(usage)}${metadata === undefined ? '' : metadataJson(metadata)}}`;
    return `${failure}data: ${last}\n\ndata: [DONE]\n\n`;
  }

  failed(error: GatewayError): string {
    const shown = metadataJson(error.gateway_metadata);
    const failed = headOf(this.#fields, { model: this.#fields.model, provider: failedProvider(error) });
    const usage = `"service_tier":null,"choices":[],"usage":${JSON.stringify(NO_USAGE)}`;
    return `${frame(failureJson(failed, error, this.#textForm))}${frame(`${failed},${usage}${shown}}`)}data: [DONE]\n\n`;
  }

  /** Switches to a choice: whether it has begun, and whether its next delta has the role. */
  #switchTo(begun: Set<number>, choice: number): void {
    this.#hasBegun = begun.has(choice);
    this.#role = this.#hasBegun ? '' : ROLE;
    begun.add(choice);
  }

  /** A delta as JSON. `content` is in every delta. */
  #deltaJson(delta: Delta): string {
    let json = `{${this.#role}"content":${JSON.stringify(delta.content ?? '')}`;
    this.#role = '';
    const details = this.#hideReasoning ? undefined : delta.reasoning_details;
    // With details there is always `reasoning`, null if they contain nothing readable.
    if (details?.length || (delta.reasoning != null && !this.#hideReasoning)) {
      json += `,"reasoning":${JSON.stringify(delta.reasoning ?? null)}`;
    }
    if (details?.length) json += `,"reasoning_details":${JSON.stringify(details.map(publicDetail))}`;
    if (delta.tool_calls?.length) json += this.#callsJson(delta.tool_calls);
    if (delta.refusal) json += `,"refusal":${JSON.stringify(delta.refusal)}`;
    if (delta.images) json += `,"images":${JSON.stringify(delta.images)}`;
    if (delta.audio) json += `,"audio":${JSON.stringify(delta.audio)}`;
    if (delta.annotations?.length) json += `,"annotations":${JSON.stringify(delta.annotations.map(publicAnnotation))}`;
    return `${json}}`;
  }

  #callsJson(calls: NonNullable<Delta['tool_calls']>): string {
    if (!this.#functionForm) return `,"tool_calls":${JSON.stringify(calls)}`;
    const first = calls.find(({ index }) => index === 0);
    return first === undefined ? '' : `,"function_call":${JSON.stringify(first.function)}`;
  }

  #textJson({ content, reasoning, refusal }: Delta): string {
    const thought = reasoning && !this.#hideReasoning ? `,"reasoning":${JSON.stringify(reasoning)}` : '';
    return `"text":${JSON.stringify(`${content ?? ''}${refusal ?? ''}`)}${thought}`;
  }

  #finish(finishReason: FinishReason): string {
    if (this.#textForm) return textFinish(finishReason);
    return this.#functionForm ? functionFinish(finishReason) : finishReason;
  }

  /** Whether a chunk without content has nothing else for a chat client either, such as the opening and closing of blocks. The first chunk is always sent. */
  #isSilent(chunk: ChatChunk): boolean {
    return (
      this.#hasBegun &&
      chunk.finish_reason == null &&
      chunk.logprobs === undefined &&
      (!isMeaningful(chunk.delta) || (this.#hideReasoning && !isMeaningful(withoutReasoning(chunk.delta))))
    );
  }
}

/** The first fields of every object of a stream, without the closing brace. */
function headOf({ id, created }: ChatAnswerFields, by: { model: string; provider?: string | undefined }): string {
  const provider = by.provider === undefined ? '' : `,"provider":${JSON.stringify(by.provider)}`;
  return `{"id":${JSON.stringify(id)},"object":"chat.completion.chunk","created":${created},"model":${JSON.stringify(by.model)}${provider}`;
}

function withoutReasoning(delta: Delta): Delta {
  const { reasoning: _, reasoning_details: __, ...rest } = delta;
  return rest;
}

/**
 * A failure inside a stream: the error as in the envelope, beside a choice that ends. It is the first field, since some clients
 * recognize an error by the beginning of its event (github.com/sashabaranov/go-openai, stream_reader.go), and otherwise see a normal end.
 */
function failureJson(head: string, error: GatewayError, textForm: boolean): string {
  const native = error.metadata?.['provider_code'] ?? null;
  const body = textForm ? '"text":""' : '"delta":{"content":""}';
  return `{"error":${JSON.stringify(choiceError(error))},${head.slice(1)},"choices":[{"index":0,${body},"finish_reason":"error","native_finish_reason":${JSON.stringify(native)},"logprobs":null}]}`;
}
