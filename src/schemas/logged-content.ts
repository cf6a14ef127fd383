import Type, { type Static, type TSchema } from 'typebox';
import type { ChatRequest } from './inner.ts';
import type { JsonObject } from './json.ts';

const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** A message of a request as it is kept: in the form of a chat completion, media and opaque state replaced. */
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

/** What was asked and answered in a call whose workspace keeps that. */
export const GenerationContent = Type.Object(
  {
    input: Type.Object(
      {
        prompt: Type.Optional(Type.String()),
        messages: Type.Optional(Type.Array(LoggedMessage)),
      },
      { description: 'As it went to models: redacted where guardrails say so. One of the two.' },
    ),
    output: LoggedOutput,
    error: nullable(LoggedError),
    truncated: Type.Boolean({ description: 'Some of it was too long to be kept.' }),
  },
  { title: 'GenerationContent' },
);
export type GenerationContent = Static<typeof GenerationContent>;

/** The same as it is stored: the request so that guardrails can be tried on it again. */
export interface LoggedContent {
  /** `messages`, and what else of a request holds text of its client's. */
  request: JsonObject & Pick<ChatRequest, 'messages'>;
  /** It came as one text, not as messages. */
  is_prompt?: true;
  output: LoggedOutput;
  error: LoggedError | null;
  truncated?: true;
}
