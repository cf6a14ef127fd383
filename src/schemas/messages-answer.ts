import Type, { type TObject, type TProperties, type TSchema } from 'typebox';
import type { ErrorStatus } from '../errors.ts';
import { RoutingMetadata } from './routing-metadata.ts';

const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const open = <T extends TProperties>(properties: T, options: object = {}) =>
  Type.Object(properties, { additionalProperties: true, ...options });
const anything = Type.Object({}, { additionalProperties: true });

const Usage = open(
  {
    input_tokens: Type.Integer({ description: 'Tokens that were not cached.' }),
    output_tokens: Type.Integer(),
    cache_creation_input_tokens: nullable(Type.Integer()),
    cache_read_input_tokens: nullable(Type.Integer()),
    cache_creation: nullable(
      open({ ephemeral_5m_input_tokens: Type.Integer(), ephemeral_1h_input_tokens: Type.Integer() }),
    ),
    output_tokens_details: Type.Optional(open({ thinking_tokens: Type.Integer() })),
    server_tool_use: nullable(open({ web_search_requests: Type.Integer(), web_fetch_requests: Type.Integer() })),
    service_tier: nullable(Type.String()),
    cost: Type.Optional(Type.Number({ description: 'USD.' })),
    is_byok: Type.Optional(Type.Boolean()),
    cost_details: Type.Optional(
      open({
        upstream_inference_cost: nullable(Type.Number()),
        upstream_inference_prompt_cost: Type.Number(),
        upstream_inference_completions_cost: Type.Number(),
      }),
    ),
  },
  { title: 'MessagesUsage', description: 'Null if it was not reported.' },
);

const Block = open(
  {
    type: Type.String({ description: '`text`, `thinking`, `redacted_thinking`, `tool_use`, or one of the provider.' }),
  },
  { title: 'MessagesBlock', description: 'A block of the Anthropic Messages API.' },
);

const StopReason = Type.Enum([
  'end_turn',
  'max_tokens',
  'stop_sequence',
  'tool_use',
  'pause_turn',
  'refusal',
  'compaction',
  'model_context_window_exceeded',
]);

const message = {
  id: Type.String({ description: 'The id of the generation.' }),
  type: Type.Literal('message'),
  role: Type.Literal('assistant'),
  model: Type.String(),
  provider: Type.Optional(nullable(Type.String({ description: 'Display name of the provider that answered.' }))),
  content: Type.Array(Block),
  stop_reason: nullable(StopReason),
  stop_sequence: nullable(Type.String()),
  stop_details: nullable(anything),
  container: nullable(anything),
  context_management: Type.Optional(nullable(anything)),
  usage: Usage,
  gateway_metadata: Type.Optional(RoutingMetadata),
  openrouter_metadata: Type.Optional(RoutingMetadata),
};

/** Documents the answer, which the encoder writes without this schema. */
export const MessagesAnswer = open(message, { title: 'Message' });

const kinds = {
  type: Type.Enum([
    'invalid_request_error',
    'authentication_error',
    'billing_error',
    'permission_error',
    'not_found_error',
    'conflict_error',
    'request_too_large',
    'rate_limit_error',
    'timeout_error',
    'api_error',
    'overloaded_error',
  ]),
  message: Type.String(),
  error_type: Type.Optional(Type.String({ description: 'The kind in more detail.' })),
  metadata: Type.Optional(anything),
};

const MessagesError = open(
  {
    type: Type.Literal('error'),
    error: open(kinds),
    request_id: nullable(Type.String({ description: 'The id of the generation, if there is one.' })),
    gateway_metadata: Type.Optional(RoutingMetadata),
    openrouter_metadata: Type.Optional(RoutingMetadata),
  },
  { title: 'MessagesError' },
);

/** Documents each event of a stream, which the encoder writes without this schema. */
export const MessagesEvent = Type.Union(
  [
    open({ type: Type.Literal('message_start'), message: open(message) }),
    open({ type: Type.Literal('content_block_start'), index: Type.Integer(), content_block: Block }),
    open({
      type: Type.Literal('content_block_delta'),
      index: Type.Integer(),
      delta: open({
        type: Type.String({
          description:
            '`text_delta`, `thinking_delta`, `signature_delta`, `input_json_delta`, `citations_delta`, or one of the provider.',
        }),
      }),
    }),
    open({ type: Type.Literal('content_block_stop'), index: Type.Integer() }),
    open({
      type: Type.Literal('message_delta'),
      delta: open({ stop_reason: StopReason, stop_sequence: nullable(Type.String()) }),
      usage: Usage,
    }),
    open({
      type: Type.Literal('message_stop'),
      gateway_metadata: Type.Optional(RoutingMetadata),
      openrouter_metadata: Type.Optional(RoutingMetadata),
    }),
    open({ type: Type.Literal('ping'), debug: Type.Optional(anything) }),
    open({ type: Type.Literal('error'), error: open(kinds), usage: Type.Optional(Usage) }),
  ],
  { title: 'MessagesEvent' },
);

/** Declares the error statuses of an operation of the Messages API in its response schema. */
export function messagesErrors(...statuses: ErrorStatus[]): Record<number, TObject> {
  return Object.fromEntries(statuses.map((status) => [status, MessagesError]));
}
