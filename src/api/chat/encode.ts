import type { GatewayError } from '../../errors.ts';
import type { SentBody, Served, StreamEnd, WholeAnswer } from '../../inference/events.ts';
import { isMeaningful } from '../../inference/money/meter.ts';
import { NO_USAGE } from '../../inference/money/settlement.ts';
import type {
  Annotation,
  ChatChunk,
  Choice,
  Delta,
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

/** What every object of one answer carries. */
export interface Envelope {
  id: string;
  /** Unix seconds. */
  created: number;
  /** The model that was asked for: answers name the one that gave them. */
  model: string;
  /** How many choices the request asks for. Absent: one. */
  choices?: number;
  /** The request had `functions`: a call is told as `function_call`. */
  function_form?: boolean;
  /** The request had `prompt`: choices carry `text`. */
  text_form: boolean;
  /** The client wants no reasoning shown. */
  hide_reasoning: boolean;
}

/** Our own fields of a detail, and no other: extensions stay inside. */
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

function publicMessage(message: Message, hide_reasoning: boolean): Record<string, unknown> {
  const text = textOf(message.content);
  const made: Record<string, unknown> = {
    role: 'assistant',
    // Text is always text, as in streams: of an answer that says nothing (its bound went into thoughts) clients take the length.
    content: text === '' && message.refusal ? null : text,
    refusal: message.refusal ?? null,
    reasoning: hide_reasoning ? null : (message.reasoning ?? null),
  };
  if (!hide_reasoning && message.reasoning_details?.length) {
    made['reasoning_details'] = message.reasoning_details.map(publicDetail);
  }
  if (message.tool_calls?.length) made['tool_calls'] = message.tool_calls.map(publicCall);
  if (message.images?.length) made['images'] = message.images;
  if (message.audio) made['audio'] = message.audio;
  if (message.annotations?.length) made['annotations'] = message.annotations.map(publicAnnotation);
  return made;
}

/** Clients take a citation without a title for none at all, and some providers tell none. */
function publicAnnotation(annotation: Annotation): Annotation {
  if (annotation.type !== 'url_citation') return annotation;
  const { url_citation } = annotation as UrlCitation;
  return url_citation.title == null ? { ...annotation, url_citation: { ...url_citation, title: '' } } : annotation;
}

function textChoice(choice: Choice, { hide_reasoning }: Envelope): Record<string, unknown> {
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

/** How an answer ended, as clients of the older form read it. */
function functionFinish<T extends string | null | undefined>(finish_reason: T): T | 'function_call' {
  return finish_reason === 'tool_calls' ? 'function_call' : finish_reason;
}

/** The older form has one call to a message. */
function functionMessage({ tool_calls, ...message }: Record<string, unknown>): Record<string, unknown> {
  const [call] = (tool_calls ?? []) as { function: { name: string; arguments: string } }[];
  return call === undefined ? message : { ...message, function_call: call.function };
}

function messageChoice(choice: Choice, { hide_reasoning, function_form }: Envelope): Record<string, unknown> {
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

/** The whole answer as the contract has it, field by field. */
export function completionOf(answer: WholeAnswer, envelope: Envelope): Record<string, unknown> {
  const { completion, served, usage, metadata } = answer;
  const written = envelope.text_form ? textChoice : messageChoice;
  const made: Record<string, unknown> = {
    id: envelope.id,
    object: 'chat.completion',
    created: envelope.created,
    model: served.model,
    provider: served.provider,
    system_fingerprint: completion.system_fingerprint ?? null,
    service_tier: completion.service_tier ?? null,
    choices: completion.choices.map((choice) => written(choice, envelope)),
    usage,
  };
  return Object.assign(made, metadataMembers(metadata));
}

/** The same as JSON. */
export function encodeCompletion(answer: WholeAnswer, envelope: Envelope): string {
  return JSON.stringify(completionOf(answer, envelope));
}

function frame(json: string): string {
  return `data: ${json}\n\n`;
}

/** Makes the encoder of one stream. */
export function createStreamEncoder(envelope: Envelope): StreamEncoder {
  return new ChatStreamEncoder(envelope);
}

const ROLE = '"role":"assistant",';

/** A chunk's choice costs a few microseconds at most: the fixed parts are made once. A class and not closures: there is one for every stream. */
class ChatStreamEncoder implements StreamEncoder {
  readonly #envelope: Envelope;
  readonly #text_form: boolean;
  readonly #function_form: boolean;
  readonly #hide_reasoning: boolean;
  #head: string;
  /** Stands in the first delta alone: OpenAI's SDK for Python strings together what it is told in each. */
  #role = ROLE;
  #begun = false;
  /** Of several choices, those that have begun. */
  readonly #begun_choices: Set<number> | undefined;
  #service_tier: string | null = null;

  constructor(envelope: Envelope) {
    this.#envelope = envelope;
    this.#text_form = envelope.text_form;
    this.#function_form = envelope.function_form === true;
    this.#hide_reasoning = envelope.hide_reasoning;
    this.#head = headOf(envelope, envelope);
    this.#begun_choices = (envelope.choices ?? 1) === 1 ? undefined : new Set();
  }

  open(served: Served): string {
    this.#head = headOf(this.#envelope, served);
    return '';
  }

  debug({ served, body: echo_upstream_body }: SentBody): string {
    return frame(`${headOf(this.#envelope, served)},"choices":[],"debug":${JSON.stringify({ echo_upstream_body })}}`);
  }

  chunks(chunks: readonly ChatChunk[]): string {
    let text = '';
    for (const chunk of chunks) {
      this.#service_tier = chunk.service_tier ?? this.#service_tier;
      if (this.#begun_choices !== undefined) this.#turnTo(this.#begun_choices, chunk.choice ?? 0);
      if (this.#isSilent(chunk)) continue;
      this.#begun = true;
      const fingerprint = chunk.system_fingerprint
        ? `,"system_fingerprint":${JSON.stringify(chunk.system_fingerprint)}`
        : '';
      const tier = chunk.service_tier ? `,"service_tier":${JSON.stringify(chunk.service_tier)}` : '';
      text += `data: ${this.#head}${fingerprint}${tier},"choices":[${this.#choiceJson(chunk)}]}\n\n`;
    }
    return text;
  }

  end({ usage, metadata, error }: StreamEnd): string {
    const failure = error ? frame(failureJson(this.#head, error, this.#text_form)) : '';
    const shown = metadataJson(metadata);
    const tier = `"service_tier":${JSON.stringify(this.#service_tier)}`;
    return `${failure}${frame(`${this.#head},${tier},"choices":[],"usage":${JSON.stringify(usage)}${shown}}`)}data: [DONE]\n\n`;
  }

  failed(error: GatewayError): string {
    const shown = metadataJson(error.gateway_metadata);
    const failed = headOf(this.#envelope, { model: this.#envelope.model, provider: failedProvider(error) });
    const usage = `"service_tier":null,"choices":[],"usage":${JSON.stringify(NO_USAGE)}`;
    return `${frame(failureJson(failed, error, this.#text_form))}${frame(`${failed},${usage}${shown}}`)}data: [DONE]\n\n`;
  }

  /** What is of a choice that has begun is no news; its first delta tells the role. */
  #turnTo(begun: Set<number>, choice: number): void {
    this.#begun = begun.has(choice);
    this.#role = this.#begun ? '' : ROLE;
    begun.add(choice);
  }

  /** `content` stands in every delta. */
  #deltaJson(delta: Delta): string {
    let json = `{${this.#role}"content":${JSON.stringify(delta.content ?? '')}`;
    this.#role = '';
    const details = this.#hide_reasoning ? undefined : delta.reasoning_details;
    // Beside details there is always the string, null where they say nothing readable.
    if (details?.length || (delta.reasoning != null && !this.#hide_reasoning)) {
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
    if (!this.#function_form) return `,"tool_calls":${JSON.stringify(calls)}`;
    const first = calls.find(({ index }) => index === 0);
    return first === undefined ? '' : `,"function_call":${JSON.stringify(first.function)}`;
  }

  #textJson({ content, reasoning, refusal }: Delta): string {
    const thought = reasoning && !this.#hide_reasoning ? `,"reasoning":${JSON.stringify(reasoning)}` : '';
    return `"text":${JSON.stringify(`${content ?? ''}${refusal ?? ''}`)}${thought}`;
  }

  #finish(finish_reason: ChatChunk['finish_reason']): string | null | undefined {
    if (this.#text_form) return textFinish(finish_reason);
    return this.#function_form ? functionFinish(finish_reason) : finish_reason;
  }

  #choiceJson(chunk: ChatChunk): string {
    const told = this.#finish(chunk.finish_reason);
    const finish = told ? JSON.stringify(told) : 'null';
    const native = chunk.native_finish_reason ? JSON.stringify(chunk.native_finish_reason) : 'null';
    const body = this.#text_form ? this.#textJson(chunk.delta) : `"delta":${this.#deltaJson(chunk.delta)}`;
    const logprobs = chunk.logprobs === undefined ? 'null' : JSON.stringify(chunk.logprobs);
    const error = chunk.error ? `,"error":${JSON.stringify(chunk.error)}` : '';
    return `{"index":${chunk.choice ?? 0},${body},"finish_reason":${finish},"native_finish_reason":${native},"logprobs":${logprobs}${error}}`;
  }

  /** Opening and closing of blocks is no news to a chat client, but for the very first chunk. */
  #isSilent(chunk: ChatChunk): boolean {
    return (
      this.#begun &&
      chunk.finish_reason == null &&
      chunk.logprobs === undefined &&
      (!isMeaningful(chunk.delta) || (this.#hide_reasoning && !isMeaningful(withoutReasoning(chunk.delta))))
    );
  }
}

/** The fields with which every object of a stream begins, open at its end. */
function headOf({ id, created }: Envelope, by: { model: string; provider?: string | undefined }): string {
  const provider = by.provider === undefined ? '' : `,"provider":${JSON.stringify(by.provider)}`;
  return `{"id":${JSON.stringify(id)},"object":"chat.completion.chunk","created":${created},"model":${JSON.stringify(by.model)}${provider}`;
}

function withoutReasoning(delta: Delta): Delta {
  const { reasoning: _, reasoning_details: __, ...rest } = delta;
  return rest;
}

/**
 * A failure inside a stream: beside the choice that ends, the error as the envelope has it. It is the first field: some clients
 * know an error by how its event begins (github.com/sashabaranov/go-openai, stream_reader.go), and take any other for a good end.
 */
function failureJson(head: string, error: GatewayError, text_form: boolean): string {
  const native = error.metadata?.['provider_code'] ?? null;
  const body = text_form ? '"text":""' : '"delta":{"content":""}';
  return `{"error":${JSON.stringify(choiceError(error))},${head.slice(1)},"choices":[{"index":0,${body},"finish_reason":"error","native_finish_reason":${JSON.stringify(native)},"logprobs":null}]}`;
}
