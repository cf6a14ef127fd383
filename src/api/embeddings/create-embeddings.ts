import type { Server } from '../../http/server.ts';
import type { Clock } from '../../inference/call.ts';
import type { Inference } from '../../inference/create-inference.ts';
import type { Tokenizer } from '../../inference/money/tokenizer.ts';
import { embeddingsTask, estimateInputs } from '../../inference/operations/embeddings.ts';
import type { TaskAnswer } from '../../inference/operations/task.ts';
import { nextTurn } from '../../next-turn.ts';
import type { Vector } from '../../providers/embeddings/dialect.ts';
import { toBase64, toNumbers } from '../../providers/embeddings/vector.ts';
import { EmbeddingsAnswer, EmbeddingsBody } from '../../schemas/embeddings.ts';
import { errors } from '../../schemas/error.ts';
import { metadataMembers } from '../../schemas/routing-metadata.ts';
import { answerWhole } from '../shared/answer-whole.ts';
import { callOf, logFacts } from '../shared/call-of.ts';
import { embeddingRequest } from './parse-request.ts';

export interface EmbeddingsOptions {
  inference: Inference;
  tokenizer: Tokenizer;
  clock: Clock;
}

/** Numbers that are written before other requests are served, a few milliseconds of work. */
const NUMBERS_AT_ONCE = 32_768;

/** The list of vectors as JSON. A large answer takes most of a second to write; yields to other requests. */
async function encodeVectors(vectors: readonly Vector[], format: 'float' | 'base64'): Promise<string> {
  let json = '';
  let numbers = 0;
  for (const [index, vector] of vectors.entries()) {
    const embedding = format === 'base64' ? toBase64(vector) : toNumbers(vector);
    json += `${index === 0 ? '' : ','}{"object":"embedding","index":${index},"embedding":${JSON.stringify(embedding)}}`;
    numbers += embedding.length;
    if (numbers < NUMBERS_AT_ONCE) continue;
    numbers = 0;
    await nextTurn();
  }
  return json;
}

async function encode(
  { answer, served, usage, classes, metadata }: TaskAnswer<Vector[]>,
  id: string,
  format: 'float' | 'base64',
): Promise<string> {
  const { prompt_tokens, total_tokens, cost, is_byok, cost_details } = usage;
  const { in_image: imageTokens = 0 } = classes;
  const shown = {
    prompt_tokens,
    total_tokens,
    ...(cost === undefined ? {} : { cost }),
    is_byok,
    ...(cost_details === undefined ? {} : { cost_details }),
    prompt_tokens_details: { text_tokens: prompt_tokens - imageTokens, image_tokens: imageTokens },
  };
  const { model, provider } = served;
  const head = JSON.stringify({ object: 'list', id, model, provider }).slice(0, -1);
  const tail = JSON.stringify({
    usage: shown,
    ...metadataMembers(metadata),
  }).slice(1);
  return `${head},"data":[${await encodeVectors(answer, format)}],${tail}`;
}

/** `POST /embeddings`: a vector for each input, in order. */
export function createEmbeddings(server: Server, { inference, tokenizer, clock }: EmbeddingsOptions): void {
  server.route({
    method: 'POST',
    url: '/embeddings',
    config: { metered: inference, direct: true },
    schema: {
      operationId: 'createEmbeddings',
      tags: ['Embeddings'],
      summary: 'Turns texts, or texts and images, into vectors.',
      description:
        'More inputs than a provider accepts in one request are sent in several; the answer keeps their order.',
      body: EmbeddingsBody,
      response: { 200: EmbeddingsAnswer, ...errors(400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 502, 503) },
    },
    handler: async (request, reply) => {
      const { request: embedding, routed } = embeddingRequest(request.body);
      const call = callOf(request, routed, clock, {
        api_type: 'embeddings',
        estimate: () => estimateInputs(embedding.inputs),
      });
      reply.header('x-generation-id', call.generation_id);
      request.log_facts = () => logFacts([call]);
      return answerWhole(
        reply,
        call,
        () => inference.run(call, embeddingsTask(embedding, routed, tokenizer)),
        (answer) => encode(answer, call.generation_id, embedding.encoding_format),
      );
    },
  });
}
