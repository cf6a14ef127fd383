import type { Model } from '../../catalog/model.ts';
import { pricesInReach } from '../../catalog/price-list.ts';
import { makesVectors } from '../../catalog/vectors.ts';
import { GatewayError } from '../../errors.ts';
import { inTurns, oneATurn } from '../../http/in-turns.ts';
import { atOnce } from '../../http/turn-work.ts';
import { afterDiscountPpm } from '../../ledger/prices/charge.ts';
import { estimateTokens } from '../../ledger/prices/token-estimate.ts';
import { limits } from '../../limits.ts';
import { type Media, type Report, UpstreamError } from '../../providers/dialect.ts';
import type { EmbeddingDialect, EmbeddingInput, EmbeddingRequest, Vector } from '../../providers/embeddings/dialect.ts';
import { embeddingDialectOf } from '../../providers/embeddings/dialects.ts';
import { imagesToFetch, inlineImages, isTokens } from '../../providers/embeddings/parts.ts';
import { normalised } from '../../providers/embeddings/vector.ts';
import { readDataUrl } from '../../providers/shared/data-url.ts';
import { unpricedFields } from '../../providers/shared/worst-case.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { ChatRequest, Message, TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { isLongJson } from '../../schemas/json-pieces.ts';
import type { Prices } from '../../schemas/prices.ts';
import { readable } from '../attempt/answer-bounds.ts';
import { writeBody } from '../attempt/prepare-attempt.ts';
import { CallCancelled } from '../attempt/upstream-call.ts';
import type { Measured, Prepared } from '../money/admission.ts';
import { ESTIMATE_MARGIN, fixedMeasure, TOKEN_BYTES_MAX, UTF8_BYTES_MAX } from '../money/measure.ts';
import { sentDataOf, writtenChars } from '../money/sent-data.ts';
import type { Tokenizer } from '../money/tokenizer.ts';
import { imageTokens, type WorstCaseCost } from '../money/worst-case.ts';
import type { ModelSource } from '../plan/requested-models.ts';
import { knownModel } from '../plan/unknown-model.ts';
import { withOptions } from '../prepare/provider-options.ts';
import type { Task, TaskFields, TaskUpstream } from './task.ts';

/** JSON values in an answer, for each input of an embedding. */
export const EMBEDDING_ANSWER_VALUES_MAX = 16_384;
/** Tokens that a provider may add to each input: a prompt for queries or documents, marks of the vocabulary. */
const EMBEDDING_TEMPLATE_TOKENS_MAX = 64;
/** Requests that one attempt at embeddings has under way at a time, where its inputs are too many for one. */
export const EMBEDDING_REQUESTS_AT_ONCE_MAX = 8;

/** The inputs of one upstream request. */
interface Batch {
  inputs: EmbeddingInput[];
  path: string;
  headers: Record<string, string>;
  payload: string | Buffer;
  /** The characters of `payload` that are base64 of images. */
  dataChars: number;
  is_unnormalised: boolean;
}

export interface PreparedEmbeddings extends Prepared {
  dialect: EmbeddingDialect;
  batches: Batch[];
}

/** The inputs as messages, which the engine reads of every call. Token inputs have no text. */
export function messagesOf(inputs: readonly EmbeddingInput[]): Message[] {
  return inputs.map((input) => {
    if (typeof input === 'string') return { role: 'user', content: input };
    return { role: 'user', content: isTokens(input) ? '' : input };
  });
}

/** The estimate of an image, as in chat. */
const IMAGE_TOKENS = 800;

/** The estimated usage of inputs. */
export function estimateInputs(inputs: readonly EmbeddingInput[]): TokenClasses {
  let [text, image] = [0, 0];
  for (const input of inputs) {
    if (typeof input === 'string') text += estimateTokens(input);
    else if (isTokens(input)) text += input.length;
    else {
      for (const part of input) {
        if (part.type === 'text') text += estimateTokens(part.text);
        else image += IMAGE_TOKENS;
      }
    }
  }
  return { in_uncached: Math.ceil(text), ...(image === 0 ? {} : { in_image: image }), estimated: true };
}

/** Divides inputs into batches of one request each, in order. An input that is too large is a batch of its own. */
export function divide(
  inputs: readonly EmbeddingInput[],
  { inputs_max, tokens_max = Number.POSITIVE_INFINITY }: { inputs_max: number; tokens_max?: number },
): EmbeddingInput[][] {
  const batches: EmbeddingInput[][] = [];
  let last: EmbeddingInput[] = [];
  let tokens = 0;
  for (const input of inputs) {
    let more = 0;
    if (tokens_max !== Number.POSITIVE_INFINITY) {
      const { in_uncached = 0, in_image = 0 } = estimateInputs([input]);
      more = Math.ceil((in_uncached + in_image) * ESTIMATE_MARGIN);
    }
    if (last.length > 0 && (last.length >= inputs_max || tokens + more > tokens_max)) {
      batches.push(last);
      last = [];
      tokens = 0;
    }
    last.push(input);
    tokens += more;
  }
  batches.push(last);
  return batches;
}

/** Reports the client's fields that the wire does not accept. */
function leftOut({ rest = {} }: EmbeddingRequest, { takesRest }: EmbeddingDialect): Report[] {
  if (takesRest) return [];
  const reason = 'the endpoint does not support it';
  const fields = Object.keys(rest).slice(0, limits.reports_max);
  return fields.map((field) => ({ kind: 'dropped', field: field.slice(0, limits.error_field_chars_max), reason }));
}

/** The base64 characters of the inputs that a body has. Yields when other requests may be served. */
function* countDataChars(
  body: JsonObject,
  inputs: readonly EmbeddingInput[],
  media: Media,
): Generator<void, number, undefined> {
  const data: string[] = [];
  for (const input of inputs) {
    if (typeof input === 'string' || isTokens(input)) continue;
    for (const part of input) {
      if (part.type !== 'image_url') continue;
      const { url } = part.image_url;
      const base64 = (readDataUrl(url) ?? media.get(url))?.base64;
      if (base64 !== undefined) data.push(base64);
    }
  }
  const sent = yield* sentDataOf(body, data);
  let chars = 0;
  for (const one of data) if (sent.take(yield* sent.markOf(one))) chars += writtenChars(one);
  return chars;
}

function prepare(
  original: EmbeddingRequest,
  chat: ChatRequest,
  candidate: Candidate,
  media: Media,
): PreparedEmbeddings | Promise<PreparedEmbeddings> {
  const isInline = candidate.endpoint.quirks.inline_media === true && media.size > 0;
  const request = isInline ? { ...original, inputs: inlineImages(original.inputs, media) } : original;
  const dialect = embeddingDialectOf(candidate.provider);
  if (dialect === undefined) throw new GatewayError(400, `${candidate.provider.name} does not offer embeddings`);
  let report: Report[] = [];
  const divided = divide(request.inputs, dialect.batch(candidate.endpoint, request.inputs));
  if (divided.length > limits.embedding_requests_max) {
    const count = `${divided.length} requests, more than ${limits.embedding_requests_max}`;
    throw new GatewayError(400, `At this endpoint this number of inputs needs ${count}`);
  }
  const encode = (inputs: EmbeddingInput[], index: number): Batch | Promise<Batch> => {
    const encoded = dialect.encodeRequest({ ...request, inputs }, candidate.endpoint, media);
    const changes = [...encoded.report, ...leftOut(request, dialect)];
    const rules = { reserved: dialect.reserved, serviceTier: () => undefined, worstCase: { unpricedFields } };
    const body = withOptions(encoded.body, chat, candidate, rules, changes);
    // All requests of an attempt have the same report.
    if (index === 0) report = changes;
    const { path, headers, is_unnormalised = false } = encoded;
    const batch = { inputs, path, headers, is_unnormalised };
    const counting = countDataChars(body, inputs, media);
    const written = writeBody(body);
    if (!(written instanceof Promise)) return { ...batch, payload: written, dataChars: atOnce(counting) };
    return written.then(async (payload) => ({ ...batch, payload, dataChars: (await inTurns(counting))! }));
  };
  const finish = (batches: Batch[]): PreparedEmbeddings => {
    return { candidate, request: chat, output_tokens: 0, service_tier: undefined, report, dialect, batches };
  };
  // Many short inputs take as long as a long one.
  if (isLongJson(request.inputs)) return oneATurn(divided, encode).then(finish);
  const batches = divided.map(encode);
  return batches.every((batch): batch is Batch => !(batch instanceof Promise))
    ? finish(batches)
    : Promise.all(batches).then(finish);
}

/** The bytes of text that is sent, without the base64 of images, and the numbers of inputs and images. */
function sizeOf({ batches }: PreparedEmbeddings): { bytes: number; inputs: number; images: number } {
  const size = { bytes: 0, inputs: 0, images: 0 };
  for (const { payload, dataChars, inputs } of batches) {
    size.bytes += (typeof payload === 'string' ? Buffer.byteLength(payload) : payload.length) - dataChars;
    size.inputs += inputs.length;
    for (const input of inputs) {
      if (typeof input === 'string' || isTokens(input)) continue;
      size.images += input.filter(({ type }) => type === 'image_url').length;
    }
  }
  return size;
}

function exposureFor({ candidate }: PreparedEmbeddings, text: number, images: number, image: number): WorstCaseCost {
  const { endpoint } = candidate;
  const line = (prices: Prices) => {
    const prompt = prices.prompt ?? 0;
    const fixedPico =
      text * prompt +
      image * Math.max(prompt, prices.image_token ?? 0) +
      images * (prices.image ?? 0) +
      (prices.request ?? 0);
    return {
      fixed_pico: fixedPico,
      output_pico: 0,
      afterDiscountPpm: afterDiscountPpm(prices),
    };
  };
  const lists = pricesInReach(endpoint, { prompt_tokens: text + image, service_tier: undefined });
  return { lines: lists.map(line), output_tokens: 0 };
}

/**
 * The most that an attempt may cost: each byte that is sent is at most one token, token inputs are sent as digits, and providers add a
 * prefix to each input.
 */
function measured(prepared: PreparedEmbeddings, mode: 'strict' | 'soft', tokenizer: Tokenizer): Measured {
  const { candidate, batches } = prepared;
  const { bytes, inputs, images } = sizeOf(prepared);
  if (mode === 'soft') {
    const { in_uncached = 0, in_image = 0 } = estimateInputs(batches.flatMap((batch) => batch.inputs));
    return fixedMeasure(exposureFor(prepared, Math.ceil(in_uncached * ESTIMATE_MARGIN), images, in_image));
  }
  const image = images * imageTokens(candidate.model.tokenizer, candidate.endpoint.upstream_model);
  const added = inputs * EMBEDDING_TEMPLATE_TOKENS_MAX;
  const exposureOf = (text: number) => exposureFor(prepared, text + added, images, image);
  return {
    exposure: exposureOf(bytes),
    floor: () => exposureOf(Math.floor(bytes / TOKEN_BYTES_MAX)),
    least_tokens: 0,
    async count() {
      // The digits of token inputs, and base64, are not the text that the model reads.
      if (images > 0 || batches.some((batch) => batch.inputs.some((input) => typeof input !== 'string')))
        return undefined;
      // Too long for the tokenizer, whatever its characters are.
      if (bytes > limits.tokenized_chars_max * UTF8_BYTES_MAX) return undefined;
      const tokens = await tokenizer.count(batches.map(({ payload }) => payload).join('\n'), candidate);
      return tokens === undefined || tokens >= bytes ? undefined : exposureOf(tokens);
    },
  };
}

async function sendBatch({ dialect }: PreparedEmbeddings, batch: Batch, upstream: TaskUpstream): Promise<Vector[]> {
  const { path, headers, payload, inputs } = batch;
  const valuesMax = limits.answer_values_max + inputs.length * EMBEDDING_ANSWER_VALUES_MAX;
  const answer = await upstream.send({ path, headers, payload, values_max: valuesMax });
  const { vectors, usage, upstream_id } = readable(() => dialect.decodeResponse(answer.body, answer.headers));
  if (usage === undefined || !upstream.bill(usage, upstream_id)) upstream.bill(estimateInputs(inputs), upstream_id);
  if (vectors.length !== inputs.length) {
    const counts = `${vectors.length} vectors for ${inputs.length} inputs`;
    throw new UpstreamError('invalid_response', `The provider answered with ${counts}`, { status: 200 });
  }
  const complete = vectors.filter((vector) => vector !== undefined);
  if (complete.length !== inputs.length) {
    const text = "The provider's answer does not have one vector for each input";
    throw new UpstreamError('invalid_response', text, { status: 200 });
  }
  return batch.is_unnormalised ? complete.map(normalised) : complete;
}

/** The failure that an attempt reports: failures with an unknown cost go before those that cost nothing. */
function worstOf(failures: unknown[]): unknown {
  const weight = (error: unknown) => {
    if (error instanceof CallCancelled) return error.may_be_billed ? 3 : 1;
    if (!(error instanceof UpstreamError)) return 4;
    return error.status === null && !error.never_sent ? 2 : 0;
  };
  return failures.toSorted((a, b) => weight(b) - weight(a))[0];
}

/** Sends all batches, some at a time. After a failure no batch is started; running ones are awaited, since they are billed. */
async function send(prepared: PreparedEmbeddings, upstream: TaskUpstream): Promise<Vector[]> {
  const { batches } = prepared;
  const answers: Vector[][] = [];
  const failures: unknown[] = [];
  let next = 0;
  const work = async () => {
    while (next < batches.length && failures.length === 0) {
      const index = next;
      next += 1;
      const batch = batches[index];
      if (batch === undefined) return;
      try {
        answers[index] = await sendBatch(prepared, batch, upstream);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(EMBEDDING_REQUESTS_AT_ONCE_MAX, batches.length) }, work));
  if (failures.length > 0) throw worstOf(failures);
  return answers.flat();
}

function embeddingModel(id: string, catalog: ModelSource): Model {
  const model = knownModel(id, catalog);
  if (!makesVectors(model)) throw new GatewayError(404, `${id} is not an embedding model`);
  return model;
}

function inputOf(
  request: EmbeddingRequest,
  chat: ChatRequest & { model: string },
  tokenizer: Tokenizer,
): TaskFields<PreparedEmbeddings, Vector[]> {
  const { inputs, rest } = request;
  const named: Pick<EmbeddingRequest, 'user' | 'input_type'> = {};
  if (request.user !== undefined) named.user = request.user;
  if (request.input_type !== undefined) named.input_type = request.input_type;
  return {
    fields: { ...rest, ...named, input: inputs, provider: chat.provider } as JsonObject,
    unreadable: inputs.some(isTokens) ? 'input' : undefined,
    withFields(fields) {
      const { input, provider, input_type, user, ...others } = fields as JsonObject & Pick<ChatRequest, 'provider'>;
      const changed: EmbeddingRequest = { ...request, inputs: input as unknown as EmbeddingInput[] };
      if (input_type !== undefined) changed.input_type = input_type as string;
      if (user !== undefined) changed.user = user as string;
      if (rest !== undefined) changed.rest = others;
      const changedChat = { ...chat, messages: messagesOf(changed.inputs), ...(provider == null ? {} : { provider }) };
      return { task: embeddingsTask(changed, changedChat, tokenizer), request: changedChat };
    },
  };
}

/** A request for embeddings as a task: one vector for each input, in their order. `chat`: the request as the engine reads it. */
export function embeddingsTask(
  request: EmbeddingRequest,
  chat: ChatRequest & { model: string },
  tokenizer: Tokenizer,
): Task<PreparedEmbeddings, Vector[]> {
  return {
    input: () => inputOf(request, chat, tokenizer),
    models: (catalog) => ({ models: [embeddingModel(chat.model, catalog)], requested: chat.model }),
    refuses: ({ provider }) =>
      embeddingDialectOf(provider) === undefined ? 'its provider is not known to offer embeddings' : undefined,
    media: {
      place: 'input',
      needs: ({ provider, endpoint }) =>
        endpoint.quirks.inline_media
          ? imagesToFetch(request.inputs)
          : (embeddingDialectOf(provider)?.requiredMedia?.(request.inputs) ?? []),
    },
    prepare: (candidate, media) => prepare(request, chat, candidate, media),
    measure: (prepared, _output_tokens, mode) => measured(prepared, mode, tokenizer),
    send,
  };
}
