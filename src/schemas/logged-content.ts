import Type, { type Static, type TSchema } from 'typebox';
import type { ChatRequest } from './inner.ts';
import type { JsonObject } from './json.ts';

const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** A logged message, in the form of chat completions. Media and opaque state are replaced. */
const LoggedMessage = Type.Object({ role: Type.String() }, { additionalProperties: true, title: 'LoggedMessage' });

const LoggedOutput = Type.Object(
  {
    completion: nullable(Type.String({ description: 'The text of the answer; null: there was none.' })),
    reasoning: nullable(Type.String()),
    refusal: Type.Optional(Type.String()),
    tool_calls: Type.Optional(
      Type.Array(
        Type.Object({
          id: Type.String(),
          type: Type.Literal('function'),
          function: Type.Object({ name: Type.String(), arguments: Type.String() }),
        }),
      ),
    ),
    media: Type.Optional(Type.Array(Type.String(), { description: 'Images and sound: type, size and hash.' })),
    finish_reason: Type.Optional(nullable(Type.String())),
  },
  { title: 'LoggedOutput' },
);
export type LoggedOutput = Static<typeof LoggedOutput>;

const LoggedError = Type.Object(
  {
    message: Type.String(),
    status: Type.Integer(),
    provider_name: nullable(Type.String()),
    raw: Type.Optional(Type.Unknown()),
    previous_errors: Type.Array(Type.Object({}, { additionalProperties: true })),
  },
  { title: 'LoggedError' },
);
export type LoggedError = Static<typeof LoggedError>;

/** Why the content of a call that should be logged is missing. */
const NotKept = Type.Object(
  {
    reason: Type.String(),
    created_at: Type.String({ description: 'When the request arrived.' }),
    model: nullable(Type.String({ description: 'The model that answered; null: it is not known.' })),
  },
  {
    title: 'NotKept',
    description:
      'The workspace keeps this request, but its content could not be kept: `input` and `output` are empty. The metric `gateway_logged_contents_lost_total` counts it.',
  },
);
export type NotKept = Static<typeof NotKept>;

/** The logged request and answer of a call. */
export const GenerationContent = Type.Object(
  {
    input: Type.Object(
      {
        prompt: Type.Optional(Type.String()),
        messages: Type.Optional(Type.Array(LoggedMessage)),
        fields: Type.Optional(
          Type.Object(
            {},
            {
              additionalProperties: true,
              description:
                'The other fields of the request that can hold text: tools, response format, metadata, and more.',
            },
          ),
        ),
      },
      { description: 'As models received it: redacted if guardrails require it. Either `prompt` or `messages`.' },
    ),
    output: LoggedOutput,
    error: nullable(LoggedError),
    truncated: Type.Boolean({ description: 'Some of it was too long to be kept.' }),
    not_kept: Type.Optional(NotKept),
  },
  { title: 'GenerationContent' },
);
export type GenerationContent = Static<typeof GenerationContent>;

/** The stored form of a logged call, in which the request can be tested against guardrails. */
export interface LoggedContent {
  /** `messages`, and the other fields that contain text of the client. */
  request: JsonObject & Pick<ChatRequest, 'messages'>;
  /** The request was one text instead of messages. */
  is_prompt?: true;
  output: LoggedOutput;
  error: LoggedError | null;
  truncated?: true;
  /** Set on a stub: there is no other content. */
  not_kept?: NotKept;
}

/** The stored stub of a call whose content cannot be logged. */
export function stubOf(notKept: NotKept): LoggedContent {
  return { request: { messages: [] }, output: { completion: null, reasoning: null }, error: null, not_kept: notKept };
}
