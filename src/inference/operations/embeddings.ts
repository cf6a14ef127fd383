import type { Model } from '../../catalog/model.ts';
import { pricesInReach } from '../../catalog/price-list.ts';
import { makesVectors } from '../../catalog/vectors.ts';
import { GatewayError } from '../../errors.ts';
import { inTurns, oneATurn } from '../../http/in-turns.ts';
import { atOnce } from '../../http/turn-work.ts';
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
import { withOptions, writeBody } from '../attempt/attempt.ts';
import { CallCancelled } from '../attempt/exchange.ts';
import type { Measured, Prepared } from '../money/admission.ts';
import { ESTIMATE_MARGIN, TOKEN_BYTES_MAX, UTF8_BYTES_MAX } from '../money/measure.ts';
import { sentDataOf, writtenChars } from '../money/sent-data.ts';
import type { Tokenizer } from '../money/tokenizer.ts';
import { imageTokens, type WorstCaseCost } from '../money/worst-case.ts';
import type { ModelSource } from '../plan/requested-models.ts';
import { unknownModel } from '../plan/unknown-model.ts';
import type { Line, Task, Words } from './task.ts';

/** Inputs that go in one upstream request. */
interface Batch {
  inputs: EmbeddingInput[];
  path: string;
  headers: Record<string, string>;
  payload: string | Buffer;
  /** Characters of it that are base64 of images. */
  data_chars: number;
  is_unnormalised: boolean;
}

export interface PreparedEmbeddings extends Prepared {
  dialect: EmbeddingDialect;
  batches: Batch[];
}

/** The inputs as messages: what the flow reads of every call alike. Tokens have no text. */
export function messagesOf(inputs: readonly EmbeddingInput[]): Message[] {
  return inputs.map((input) => {
    if (typeof input === 'string') return { role: 'user', content: input };
    return { role: 'user', content: isTokens(input) ? '' : input };
  });
}

/** An image counts as much by our estimate, as in chat. */
const IMAGE_TOKENS = 800;

/** What inputs use by our own count. */
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

function tokensOf(input: EmbeddingInput): number {
  const { in_uncached = 0, in_image = 0 } = estimateInputs([input]);
  return Math.ceil((in_uncached + in_image) * ESTIMATE_MARGIN);
}

/** Divides inputs by what one request may hold, in order; an input that is too large by itself stands alone. */
export function divide(
  inputs: readonly EmbeddingInput[],
  { inputs_max, tokens_max = Number.POSITIVE_INFINITY }: { inputs_max: number; tokens_max?: number },
): EmbeddingInput[][] {
  const batches: EmbeddingInput[][] = [];
  let last: EmbeddingInput[] = [];
  let tokens = 0;
  for (const input of inputs) {
    const more = tokens_max === Number.POSITIVE_INFINITY ? 0 : tokensOf(input);
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

/** Fields of the client's own that only one wire may know. */
function leftOut({ rest = {} }: EmbeddingRequest, { takesRest }: EmbeddingDialect): Report[] {
  if (takesRest) return [];
  const reason = 'the endpoint does not support it';
  const fields = Object.keys(rest).slice(0, limits.reports_max);
  return fields.map((field) => ({
    kind: 'dropped',
    field: field.slice(0, limits.error_field_chars_max),
    reason,
  }));
}

/** Of the base64 of inputs, what a body holds. Yields where others may be served. */
function* dataChars(
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
      const found = (readDataUrl(url) ?? media.get(url))?.base64;
      if (found !== undefined) data.push(found);
    }
  }
  const sent = yield* sentDataOf(body, data);
  let chars = 0;
  for (const one of data) if (sent.take(yield* sent.markOf(one))) chars += writtenChars(one);
  return chars;
}

function prepare(
  given: EmbeddingRequest,
  asked: ChatRequest,
  candidate: Candidate,
  media: Media,
): PreparedEmbeddings | Promise<PreparedEmbeddings> {
  const is_inline = candidate.endpoint.quirks.inline_media === true && media.size > 0;
  const request = is_inline ? { ...given, inputs: inlineImages(given.inputs, media) } : given;
  const dialect = embeddingDialectOf(candidate.provider);
  if (dialect === undefined) throw new GatewayError(400, `${candidate.provider.name} does not offer embeddings`);
  const bounds = dialect.batch(candidate.endpoint, request.inputs);
  let report: Report[] = [];
  const divided = divide(request.inputs, bounds);
  if (divided.length > limits.embedding_requests_max) {
    const least = `${divided.length} requests, more than ${limits.embedding_requests_max}`;
    throw new GatewayError(400, `At this endpoint this number of inputs needs ${least}`);
  }
  const encode = (inputs: EmbeddingInput[], index: number): Batch | Promise<Batch> => {
    const encoded = dialect.encodeRequest({ ...request, inputs }, candidate.endpoint, media);
    // Each request of an attempt has the same to tell.
    const told = [...encoded.report, ...leftOut(request, dialect)];
    const rules = { reserved: dialect.reserved, serviceTier: () => undefined, worstCase: { unpricedFields } };
    const body = withOptions(encoded.body, asked, candidate, rules, told);
    if (index === 0) report = told;
    const { path, headers, is_unnormalised = false } = encoded;
    const made = (payload: string | Buffer, data_chars: number): Batch => ({
      inputs,
      path,
      headers,
      payload,
      data_chars,
      is_unnormalised,
    });
    const written = writeBody(body);
    if (!(written instanceof Promise)) return made(written, atOnce(dataChars(body, inputs, media)));
    // They are always wanted.
    return written.then(async (payload) => made(payload, (await inTurns(dataChars(body, inputs, media)))!));
  };
  const made = (batches: Batch[]): PreparedEmbeddings => {
    return { candidate, request: asked, output_tokens: 0, service_tier: undefined, report, dialect, batches };
  };
  // Many short ones take as long as a long one.
  if (isLongJson(request.inputs)) return oneATurn(divided, encode).then(made);
  const batches = divided.map(encode);
  return batches.every((batch): batch is Batch => !(batch instanceof Promise))
    ? made(batches)
    : Promise.all(batches).then(made);
}

/** Text that is sent, in bytes, without the base64 of images; and how many images there are. */
function sizeOf({ batches }: PreparedEmbeddings): { bytes: number; inputs: number; images: number } {
  const size = { bytes: 0, inputs: 0, images: 0 };
  for (const { payload, data_chars, inputs } of batches) {
    size.bytes += (typeof payload === 'string' ? Buffer.byteLength(payload) : payload.length) - data_chars;
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
    const fixed_pico =
      text * prompt +
      image * Math.max(prompt, prices.image_token ?? 0) +
      images * (prices.image ?? 0) +
      (prices.request ?? 0);
    return { fixed_pico, output_pico: 0, afterDiscountPpm: 1_000_000 - Math.round((prices.discount ?? 0) * 1_000_000) };
  };
  const lists = pricesInReach(endpoint, { prompt_tokens: text + image, service_tier: undefined });
  return { lines: lists.map(line), output_tokens: 0 };
}

/**
 * What an attempt may cost: each byte that is sent is a token at most, tokens are sent as digits, and providers add to each input
 * what they put before queries and documents.
 */
function measured(prepared: PreparedEmbeddings, mode: 'strict' | 'soft', tokenizer: Tokenizer): Measured {
  const { candidate, batches } = prepared;
  const { bytes, inputs, images } = sizeOf(prepared);
  const least_tokens = 0;
  if (mode === 'soft') {
    const { in_uncached = 0, in_image = 0 } = estimateInputs(batches.flatMap((batch) => batch.inputs));
    const exposure = exposureFor(prepared, Math.ceil(in_uncached * ESTIMATE_MARGIN), images, in_image);
    return { exposure, floor: () => exposure, least_tokens, count: async () => undefined };
  }
  const image = images * imageTokens(candidate.model.tokenizer, candidate.endpoint.upstream_model);
  const added = inputs * limits.embedding_template_tokens_max;
  const of = (text: number) => exposureFor(prepared, text + added, images, image);
  return {
    exposure: of(bytes),
    floor: () => of(Math.floor(bytes / TOKEN_BYTES_MAX)),
    least_tokens,
    async count() {
      // Digits of tokens, and base64, are no text of the model's.
      if (images > 0 || batches.some((batch) => batch.inputs.some((input) => typeof input !== 'string')))
        return undefined;
      // More than is counted, whatever its characters are.
      if (bytes > limits.tokenized_chars_max * UTF8_BYTES_MAX) return undefined;
      const tokens = await tokenizer.count(batches.map(({ payload }) => payload).join('\n'), candidate);
      return tokens === undefined || tokens >= bytes ? undefined : of(tokens);
    },
  };
}

async function askBatch({ dialect }: PreparedEmbeddings, batch: Batch, line: Line): Promise<Vector[]> {
  const { path, headers, payload, inputs } = batch;
  const values_max = limits.answer_values_max + inputs.length * limits.embedding_answer_values_max;
  const answer = await line.ask({ path, headers, payload, values_max });
  const { vectors, usage, upstream_id } = readable(() => dialect.decodeResponse(answer.body, answer.headers));
  if (usage === undefined || !line.bill(usage, upstream_id)) line.bill(estimateInputs(inputs), upstream_id);
  if (vectors.length !== inputs.length) {
    const found = `${vectors.length} vectors for ${inputs.length} inputs`;
    throw new UpstreamError('invalid_response', `The provider answered with ${found}`, { status: 200 });
  }
  const found = vectors.filter((vector) => vector !== undefined);
  if (found.length !== inputs.length) {
    const text = "The provider's answer does not have one vector for each input";
    throw new UpstreamError('invalid_response', text, { status: 200 });
  }
  return batch.is_unnormalised ? found.map(normalised) : found;
}

/** The failure that stands for all of an attempt: one whose cost nobody knows before one that cost nothing. */
function worstOf(failures: unknown[]): unknown {
  const weight = (error: unknown) => {
    if (error instanceof CallCancelled) return error.may_be_billed ? 3 : 1;
    if (!(error instanceof UpstreamError)) return 4;
    return error.status === null && !error.never_sent ? 2 : 0;
  };
  return failures.toSorted((a, b) => weight(b) - weight(a))[0];
}

/** Asks for all batches, some at a time. After a failure none is begun; those under way are waited for, since they are billed. */
async function send(prepared: PreparedEmbeddings, line: Line): Promise<Vector[]> {
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
        answers[index] = await askBatch(prepared, batch, line);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(limits.embedding_requests_at_once_max, batches.length) }, work));
  if (failures.length > 0) throw worstOf(failures);
  return answers.flat();
}

function embeddingModel(id: string, catalog: ModelSource): Model {
  const model = catalog.find(id);
  if (model === undefined) throw unknownModel(id, catalog, { status: 404 });
  if (!makesVectors(model)) throw new GatewayError(404, `${id} is not an embedding model`);
  return model;
}

/** What a client wrote to have it turned into vectors. */
function wordsOf(
  request: EmbeddingRequest,
  asked: ChatRequest & { model: string },
  tokenizer: Tokenizer,
): Words<PreparedEmbeddings, Vector[]> {
  const { inputs, rest, input_type, user } = request;
  return {
    said: {
      ...rest,
      ...(user === undefined ? {} : { user }),
      ...(input_type === undefined ? {} : { input_type }),
      input: inputs,
      provider: asked.provider,
    } as JsonObject,
    unreadable: inputs.some(isTokens) ? 'input' : undefined,
    retold(said) {
      const {
        input,
        provider,
        input_type: purpose,
        user: heard_user,
        ...others
      } = said as JsonObject & Pick<ChatRequest, 'provider'>;
      const told = {
        ...request,
        inputs: input as unknown as EmbeddingInput[],
        ...(purpose === undefined ? {} : { input_type: purpose as string }),
        ...(heard_user === undefined ? {} : { user: heard_user as string }),
        ...(rest === undefined ? {} : { rest: others }),
      };
      const heard = { ...asked, messages: messagesOf(told.inputs), ...(provider == null ? {} : { provider }) };
      return { task: embeddingsTask(told, heard, tokenizer), request: heard };
    },
  };
}

/** A request for embeddings as a task of the flow: one vector for each input, in their order. */
export function embeddingsTask(
  request: EmbeddingRequest,
  asked: ChatRequest & { model: string },
  tokenizer: Tokenizer,
): Task<PreparedEmbeddings, Vector[]> {
  return {
    words: () => wordsOf(request, asked, tokenizer),
    models: (catalog) => ({ models: [embeddingModel(asked.model, catalog)], requested: asked.model }),
    refuses: ({ provider }) =>
      embeddingDialectOf(provider) === undefined ? 'its provider is not known to offer embeddings' : undefined,
    media: {
      place: 'input',
      needs: ({ provider, endpoint }) =>
        endpoint.quirks.inline_media
          ? imagesToFetch(request.inputs)
          : (embeddingDialectOf(provider)?.requiredMedia?.(request.inputs) ?? []),
    },
    prepare: (candidate, media) => prepare(request, asked, candidate, media),
    measure: (prepared, _output_tokens, mode) => measured(prepared, mode, tokenizer),
    send,
  };
}
