import type { Static } from 'typebox';
import { messagesOf } from '../../inference/operations/embeddings.ts';
import type { EmbeddingInput, EmbeddingRequest } from '../../providers/embeddings/dialect.ts';
import { gatewayFields, gatewayOnlyFields } from '../../providers/shared/gateway-fields.ts';
import type { EmbeddingsBody } from '../../schemas/embeddings.ts';
import type { ChatRequest, ImagePart, ProviderPreferences, TextPart } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';

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

/** Fields that are ours, or that would get around what the gateway sets or has a price for. */
function restOf(others: Record<string, unknown>): JsonObject {
  return Object.fromEntries(
    Object.entries(others).filter(
      ([name, value]) =>
        value != null &&
        !gatewayFields.has(name) &&
        !gatewayOnlyFields.has(name) &&
        name !== 'service_tier' &&
        name !== 'speed',
    ),
  ) as JsonObject;
}

/** The body as the dialects read it, and as the flow reads every call. */
export function embeddingRequest(body: EmbeddingsRequestBody): {
  request: EmbeddingRequest;
  asked: ChatRequest & { model: string };
} {
  const { model, dimensions, input_type, user, encoding_format, provider, input, ...others } = body;
  const inputs = inputsOf(input);
  const rest = restOf(others);
  return {
    request: {
      inputs,
      encoding_format: encoding_format ?? 'float',
      ...(dimensions == null ? {} : { dimensions }),
      ...(input_type == null ? {} : { input_type }),
      ...(user == null ? {} : { user }),
      ...(Object.keys(rest).length === 0 ? {} : { rest }),
    },
    asked: {
      model,
      messages: messagesOf(inputs),
      ...(provider == null ? {} : { provider: provider as ProviderPreferences }),
      ...(user == null ? {} : { user }),
    },
  };
}
