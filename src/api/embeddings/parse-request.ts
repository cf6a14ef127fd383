import type { Static } from 'typebox';
import { messagesOf } from '../../inference/operations/embeddings.ts';
import type { EmbeddingInput, EmbeddingRequest } from '../../providers/embeddings/dialect.ts';
import { gatewayFields, gatewayOnlyFields } from '../../providers/shared/gateway-fields.ts';
import type { EmbeddingsBody } from '../../schemas/embeddings.ts';
import type { ChatRequest, ImagePart, ProviderPreferences, TextPart } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';

export type EmbeddingsRequestBody = Static<typeof EmbeddingsBody>;

/** A content object; with texts only it becomes one text, which every wire accepts. */
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
  return (input as (string | number[] | { content: (TextPart | ImagePart)[] })[]).map((entry) =>
    typeof entry === 'string' || Array.isArray(entry) ? entry : contentOf(entry),
  );
}

/** The remaining fields, without those of the gateway and those that would bypass its settings or prices. */
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

/** Two views of a body: `request` for dialects, `routed` for routing and records. */
export function embeddingRequest(body: EmbeddingsRequestBody): {
  request: EmbeddingRequest;
  routed: ChatRequest & { model: string };
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
    routed: {
      model,
      messages: messagesOf(inputs),
      ...(provider == null ? {} : { provider: provider as ProviderPreferences }),
      ...(user == null ? {} : { user }),
    },
  };
}
