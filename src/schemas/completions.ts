/**
 * The legacy completion schema: what `POST /completions` accepts and answers (OpenAI API reference, "Completions"). Fields that it
 * shares with chat are defined there.
 */
import Type, { type TProperties, type TSchema } from 'typebox';
import { limits } from '../limits.ts';
import { ChatCompletionAnswer, ChatCompletionBody, ChatCompletionChunk } from './chat.ts';
import { RoutingMetadata } from './routing-metadata.ts';

const orNull = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));
const open = <T extends TProperties>(properties: T, options: object = {}) =>
  Type.Object(properties, { additionalProperties: true, ...options });

const {
  messages: _messages,
  prompt: _prompt,
  tools: _tools,
  tool_choice: _tool_choice,
  parallel_tool_calls: _parallel_tool_calls,
  functions: _functions,
  function_call: _function_call,
  logprobs: _logprobs,
  top_logprobs: _top_logprobs,
  n: _n,
  ...asInChat
} = ChatCompletionBody.properties;

export const CompletionBody = open(
  {
    ...asInChat,
    prompt: Type.Union(
      [
        Type.String({ minLength: 1 }),
        Type.Array(Type.Union([Type.String({ minLength: 1 }), Type.Integer(), Type.Array(Type.Integer())]), {
          minItems: 1,
        }),
      ],
      { description: `One prompt, or up to ${limits.completion_prompts_max}. Prompts in tokens are refused.` },
    ),
    echo: orNull(Type.Boolean({ description: 'Repeat the prompt before the text.' })),
    logprobs: orNull(
      Type.Integer({ minimum: 0, maximum: 5, description: 'How many tokens to report at each position.' }),
    ),
    n: orNull(Type.Integer({ minimum: 1, maximum: 1, description: 'Only 1: each prompt is answered once.' })),
    best_of: orNull(Type.Integer({ minimum: 1, maximum: 20, description: 'Only 1.' })),
    suffix: orNull(Type.String({ description: 'Not supported; an empty text counts as none.' })),
  },
  { title: 'CompletionRequest', examples: [{ model: 'sandbox/echo', prompt: 'Hello' }] },
);

const Logprobs = Type.Union(
  [
    open({
      tokens: Type.Array(Type.String()),
      token_logprobs: Type.Array(Type.Union([Type.Number(), Type.Null()])),
      top_logprobs: Type.Array(Type.Record(Type.String(), Type.Number())),
      text_offset: Type.Array(
        Type.Integer({ description: 'The position of the token in the text of the choice, in characters.' }),
      ),
    }),
    Type.Null(),
  ],
  { title: 'CompletionLogprobs' },
);

const { finish_reason, native_finish_reason, error } = ChatCompletionAnswer.properties.choices.items.properties;

const Choice = open(
  {
    index: Type.Integer({ description: 'The index of the prompt that it answers.' }),
    text: Type.String(),
    reasoning: Type.Optional(Type.String()),
    logprobs: Logprobs,
    finish_reason,
    native_finish_reason,
    error,
  },
  { title: 'CompletionChoice' },
);

const generations = Type.Optional(
  Type.Array(
    open({
      index: Type.Integer(),
      id: Type.String(),
      gateway_metadata: Type.Optional(RoutingMetadata),
      openrouter_metadata: Type.Optional(RoutingMetadata),
    }),
    {
      description: 'With several prompts: the generation of each.',
    },
  ),
);

const { choices: _answer_choices, object: _answer_object, ...answerEnvelope } = ChatCompletionAnswer.properties;
const { choices: _chunk_choices, object: _chunk_object, ...chunkEnvelope } = ChatCompletionChunk.properties;

/** Documents the answer, which the encoder writes without this schema. */
export const CompletionAnswer = open(
  { ...answerEnvelope, object: Type.Literal('text_completion'), choices: Type.Array(Choice), generations },
  { title: 'Completion' },
);

/** Documents each event of a stream. */
export const CompletionChunk = open(
  {
    ...chunkEnvelope,
    object: Type.Literal('text_completion'),
    choices: Type.Array(Choice, { description: 'Empty in the last event, which has the usage.' }),
    generations,
  },
  { title: 'CompletionChunk' },
);
