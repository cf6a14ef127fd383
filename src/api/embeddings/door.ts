import type { Static } from 'typebox';
import { messagesOf } from '../../inference/embeddings.ts';
import type { EmbeddingInput, EmbeddingRequest } from '../../providers/embeddings/dialect.ts';
import type { EmbeddingsBody } from '../../schemas/embeddings.ts';
import type { ChatRequest, ImagePart, ProviderPreferences, TextPart } from '../../schemas/inner.ts';

export type EmbeddingsRequestBody = Static<typeof EmbeddingsBody>;

/** A content object; one of texts alone is a text, which every wire takes. */
function contentOf({ content }: { content: (TextPart | ImagePart)[] }): EmbeddingInput {
  if (content.every((part) => part.type === 'text')) return content.map(({ text }) => text).join('\n');
  return content.map((part): TextPart | ImagePart =>
    part.type === 'text'
      ? { type: 'text', text: part.text }
      : { type: 'image_url', image_url: { url: part.image_url.url } },
  );
}

function inputsOf(input: EmbeddingsRequestBody['input']): EmbeddingInput[] {
  if (typeof input === 'string') return [input];
  if (typeof input[0] === 'number') return [input as number[]];
  return (input as (string | number[] | { content: (TextPart | ImagePart)[] })[]).map((one) =>
    typeof one === 'string' || Array.isArray(one) ? one : contentOf(one),
  );
}

/** The body as the dialects read it, and as the flow reads every call. */
export function embeddingRequest(body: EmbeddingsRequestBody): {
  request: EmbeddingRequest;
  asked: ChatRequest & { model: string };
} {
  const { model, dimensions, input_type, user, encoding_format, provider } = body;
  const inputs = inputsOf(body.input);
  return {
    request: {
      inputs,
      encoding_format: encoding_format ?? 'float',
      ...(dimensions == null ? {} : { dimensions }),
      ...(input_type == null ? {} : { input_type }),
      ...(user == null ? {} : { user }),
    },
    asked: {
      model,
      messages: messagesOf(inputs),
      ...(provider == null ? {} : { provider: provider as ProviderPreferences }),
      ...(user == null ? {} : { user }),
    },
  };
}
