/** What a long body may hold of what each wire rewrites value by value. */
import { describe, expect, test } from 'vitest';
import { messagesRequest } from '../../src/api/messages/parse-request.ts';
import { checkInput } from '../../src/api/responses/input-rules.ts';
import { checkRepeated } from '../../src/api/responses/response-object.ts';
import { checkParts } from '../../src/api/shared/check-body.ts';
import { checkDefinitions } from '../../src/api/shared/tool-arguments.ts';
import { limits } from '../../src/limits.ts';
import type { ChatRequest } from '../../src/schemas/inner.ts';
import type { JsonValue } from '../../src/schemas/json.ts';

describe('values that a wire rewrites are bounded', () => {
  const { definitions_values_max, definitions_chars_max, input_parts_max, repeated_chars_max } = limits;
  const tools = (parameters: JsonValue) =>
    ({ messages: [], tools: [{ type: 'function', function: { name: 'f', parameters } }] }) as unknown as ChatRequest;
  const refused = (work: () => unknown) => {
    try {
      work();
    } catch (error) {
      return (error as Error).message;
    }
    return undefined;
  };
  const values = (count: number) => Array.from({ length: count }, () => 1);

  test('definitions of tools, by values and characters, with the schema of the answer', () => {
    expect(refused(() => checkDefinitions(tools(values(definitions_values_max - 100))))).toBeUndefined();
    expect(refused(() => checkDefinitions(tools(values(definitions_values_max))))).toMatch(/more than 100000 values/);
    expect(refused(() => checkDefinitions(tools('a'.repeat(definitions_chars_max))))).toMatch(/8388608 characters/);
    const responseFormat = { schema: values(definitions_values_max) };
    expect(refused(() => checkDefinitions({ messages: [], response_format: responseFormat } as never))).toMatch(
      /tools and the schema/,
    );
  });

  test('blocks of thinking of the Messages API, and reasoning items of the Responses API', () => {
    const { input_reasoning_max: most } = limits;
    const thinking = (count: number) => ({
      model: 'a',
      max_tokens: 1,
      messages: [
        { role: 'assistant', content: Array.from({ length: count }, () => ({ type: 'thinking', thinking: 'a' })) },
      ],
    });
    const context = { envelope: { wrap: () => undefined, unwrap: () => undefined }, betas: [] };
    const read = (count: number) => refused(() => messagesRequest(thinking(count) as never, context));
    expect(read(most)).toBeUndefined();
    expect(read(most + 1)).toMatch(/at most 5000 blocks of thinking/);
    const items = (count: number) =>
      Array.from({ length: count }, (_, at) => ({ type: 'reasoning', id: `rs_${at}`, summary: [] }));
    expect(refused(() => checkInput(items(most)))).toBeUndefined();
    expect(refused(() => checkInput(items(most + 1)))).toMatch(/at most 5000 reasoning items/);
  });

  test('parts of all messages, including results of tools', () => {
    const parts = Array.from({ length: input_parts_max }, () => ({ type: 'text', text: 'a' }));
    const one = { role: 'user', content: [{ type: 'text', text: 'a' }] };
    expect(refused(() => checkParts({ messages: [{ content: parts }, { content: 'a' }] }))).toBeUndefined();
    const bodies = [
      { messages: [{ content: parts }, one] },
      { messages: [one], system: parts },
      { messages: [{ content: [{ type: 'tool_result', content: parts }] }] },
    ];
    for (const body of bodies) expect(refused(() => checkParts(body))).toMatch(/at most 50000 parts in all/);
  });

  test('fields that a Response object repeats', () => {
    expect(refused(() => checkRepeated({ instructions: 'a'.repeat(repeated_chars_max / 2) }))).toBeUndefined();
    expect(refused(() => checkRepeated({ instructions: 'a'.repeat(repeated_chars_max) }))).toMatch(/repeats of its/);
    expect(refused(() => checkRepeated({ input: 'a'.repeat(repeated_chars_max) }))).toBeUndefined();
  });
});
