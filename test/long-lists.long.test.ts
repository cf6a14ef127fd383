/** Lists as long as a body or an answer allows: no wire's code needs a stack that grows with them. */

import { describe, expect, test } from 'vitest';
import { requestTools } from '../src/api/responses/tools.ts';
import type { ChatDialect, DialectEndpoint } from '../src/providers/dialect.ts';
import { dialects } from '../src/providers/dialects.ts';
import { accumulate } from '../src/schemas/accumulate.ts';
import type { InnerPart, Message } from '../src/schemas/inner.ts';
import type { JsonObject, JsonValue } from '../src/schemas/json.ts';

/** More arguments than a call may have. */
const MANY = 130_000;
const many = <T>(make: (i: number) => T): T[] => Array.from({ length: MANY }, (_, i) => make(i));

const endpoint: DialectEndpoint = {
  model: 'a/b',
  provider: 'p',
  upstream_model: 'gemini-3-pro',
  max_completion_tokens: 1_000,
  context_length: undefined,
  input_modalities: ['text'],
  quirks: {},
};
const part: InnerPart = { type: 'text', text: 'a' };
const parts: Message = { role: 'user', content: many(() => part) };
const calls: Message = {
  role: 'assistant',
  content: many(() => part as never),
  tool_calls: many((i) => ({ id: `call_${i}`, type: 'function', function: { name: 'f', arguments: '{}' } })),
};

/** A whole answer of each wire that repeats one word many times. */
const answers: Readonly<Record<string, JsonObject>> = {
  'openai-chat': {
    choices: [
      {
        message: { role: 'assistant', content: many(() => ({ type: 'text', text: 'a' })) },
        finish_reason: 'stop',
      },
    ],
  },
  'openai-responses': {
    status: 'completed',
    output: [
      {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        content: many(() => ({ type: 'output_text', text: 'a', annotations: [] })),
      },
    ],
  },
  'anthropic-messages': {
    type: 'message',
    role: 'assistant',
    content: many(() => ({ type: 'text', text: 'a' })),
    stop_reason: 'end_turn',
  },
  'gemini-generate-content': {
    candidates: [{ content: { role: 'model', parts: many(() => ({ text: 'a' })) }, finishReason: 'STOP' }],
  },
  'bedrock-converse': {
    output: { message: { role: 'assistant', content: many(() => ({ text: 'a' })) } },
    stopReason: 'end_turn',
  },
  'cohere-chat': {
    message: { role: 'assistant', content: many(() => ({ type: 'text', text: 'a' })) },
    finish_reason: 'COMPLETE',
  },
};

describe.each([...dialects])('%s', (wire: string, dialect: ChatDialect) => {
  test.each([
    ['parts of a message', [parts, parts]],
    ['blocks and calls of a turn', [parts, calls]],
  ])('%s', (_what, messages) => {
    const { body } = dialect.encodeRequest({ messages }, endpoint, { media: new Map(), strip_state: false });
    expect(JSON.stringify(body).length).toBeGreaterThan(MANY);
  });

  test('parts of an answer', () => {
    const state = { generation_id: 'gen-1' };
    const { choices } = accumulate(dialect.decodeResponse(answers[wire] as JsonValue, state), 0);
    expect(JSON.stringify(choices[0].message.content).length).toBeGreaterThan(MANY);
  });
});

test('tools of an item of the Responses API', () => {
  const tools = many((i) => ({ type: 'function', name: `f${i}` }));
  const input = [{ type: 'additional_tools', role: 'developer', tools }];
  expect(() => requestTools({ input } as never)).toThrow(/^tools must have at most/);
});
