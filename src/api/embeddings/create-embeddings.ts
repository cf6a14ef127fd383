import type { Server } from '../../http/server.ts';
import type { Inference } from '../../inference/answer.ts';
import type { Clock } from '../../inference/call.ts';
import { embeddingsTask, estimateInputs } from '../../inference/embeddings.ts';
import type { TaskAnswer } from '../../inference/task.ts';
import type { Tokenizer } from '../../inference/tokenizer.ts';
import type { Vector } from '../../providers/embeddings/dialect.ts';
import { toBase64, toNumbers } from '../../providers/embeddings/vector.ts';
import { EmbeddingsAnswer, EmbeddingsBody } from '../../schemas/embeddings.ts';
import { errors } from '../../schemas/error.ts';
import { answerWhole } from '../answer-whole.ts';
import { callOf } from '../chat/call-of.ts';
import { embeddingRequest } from './door.ts';

export interface EmbeddingsOptions {
  inference: Inference;
  tokenizer: Tokenizer;
  clock: Clock;
}

function encode(
  { answer, served, usage, classes, metadata }: TaskAnswer<Vector[]>,
  id: string,
  format: 'float' | 'base64',
): string {
  const shown = format === 'base64' ? toBase64 : toNumbers;
  const { prompt_tokens, total_tokens, cost, is_byok, cost_details } = usage;
  const { in_image: image_tokens = 0 } = classes;
  return JSON.stringify({
    object: 'list',
    id,
    model: served.model,
    provider: served.provider,
    data: answer.map((vector, index) => ({ object: 'embedding', index, embedding: shown(vector) })),
    usage: {
      prompt_tokens,
      total_tokens,
      ...(cost === undefined ? {} : { cost }),
      is_byok,
      ...(cost_details === undefined ? {} : { cost_details }),
      prompt_tokens_details: { text_tokens: prompt_tokens - image_tokens, image_tokens },
    },
    ...(metadata === undefined ? {} : { gateway_metadata: metadata }),
  });
}

/** `POST /embeddings`: a vector for each input, in their order. */
export function createEmbeddings(server: Server, { inference, tokenizer, clock }: EmbeddingsOptions): void {
  server.route({
    method: 'POST',
    url: '/embeddings',
    config: { metered: inference },
    schema: {
      operationId: 'createEmbeddings',
      tags: ['Embeddings'],
      summary: 'Turns texts, or texts and images, into vectors.',
      description:
        'Inputs beyond what a provider takes in one request are sent in several; the answer keeps their order.',
      body: EmbeddingsBody,
      response: { 200: EmbeddingsAnswer, ...errors(400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 502, 503) },
    },
    handler: async (request, reply) => {
      const { request: wanted, asked } = embeddingRequest(request.body);
      const call = callOf(request, asked, clock, {
        api_type: 'embeddings',
        estimate: () => estimateInputs(wanted.inputs),
      });
      reply.header('x-generation-id', call.generation_id);
      request.log_facts = { generation_id: call.generation_id, model: asked.model, streamed: false };
      return answerWhole(reply, call, async () => {
        const answer = await inference.run(call, embeddingsTask(wanted, asked, tokenizer));
        return encode(answer, call.generation_id, wanted.encoding_format);
      });
    },
  });
}
