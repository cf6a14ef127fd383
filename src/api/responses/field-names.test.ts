import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../errors.ts';
import { inClientsWords } from '../../inference/prepare/client-fields.ts';
import { createEnvelopes } from '../../inference/reasoning/envelope.ts';
import { responsesFieldNames } from './field-names.ts';
import { responsesRequest } from './parse-request.ts';

const says = (role: string, content: unknown) => ({ role, content });
const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' };
const result = { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_text', text: 'x' }] };
const part = { type: 'input_text', text: 'x' };
const namespace = {
  type: 'namespace',
  name: 'n',
  tools: [
    { type: 'function', name: 'a' },
    { type: 'function', name: 'b' },
  ],
};

/** The body, its inner request, and the names of its fields; the first items of its input belong to a previous response. */
function read(body: object, former = 0) {
  const requestBody = body as Parameters<typeof responsesRequest>[0];
  const request = responsesRequest(requestBody, { envelope: createEnvelopes('secret')('organization') });
  return { request, nameOf: responsesFieldNames(requestBody, former) };
}

describe('a field of the inner language has the name that the client wrote', () => {
  const { request, nameOf } = read({
    instructions: 'I',
    tools: [{ type: 'web_search' }, namespace, { type: 'function', name: 'c' }],
    input: [
      says('user', 'Hi'),
      { type: 'reasoning', summary: [], encrypted_content: 'x' },
      call,
      result,
      says('user', [part, part]),
      says('assistant', 'A'),
      says('assistant', 'B'),
      { type: 'mcp_approval_response', approval_request_id: 'a', approve: true },
    ],
  });

  test.each([
    ['messages[0]', 'instructions'],
    ['messages[1].content', 'input[0]'],
    ['messages[2].reasoning_details[0]', 'input[1] to input[2]'],
    ['messages[3]', 'input[3]'],
    ['messages[3].content[0]', 'input[3].output[0]'],
    ['messages[4].content[1]', 'input[4].content[1]'],
    ['messages[5].content[0]', 'input[5]'],
    ['messages[6]', 'input[6]'],
    ['messages[7].content[0]', 'input[7]'],
    // Of a message that the gateway added.
    ['messages[8]', 'input'],
    ['messages', 'input'],
    ['messages[].reasoning', 'input'],
    ['tools[0]', 'tools[0]'],
    ['tools[2]', 'tools[1].tools[1]'],
    ['tools[3].strict', 'tools[2]'],
    ['tools[4]', 'tools'],
    ['max_completion_tokens', 'max_output_tokens'],
    ['response_format', 'text.format'],
    ['temperature', 'temperature'],
  ])('%s is %s', (field, name) => {
    expect(nameOf(field)).toBe(name);
  });

  test('each message has a name', () => {
    expect(request.messages.map((_, i) => nameOf(`messages[${i}]`))).not.toContain('input');
    expect(request.tools?.map((_, i) => nameOf(`tools[${i}]`))).not.toContain('tools');
  });
});

test('a text input has the name input', () => {
  expect(read({ instructions: 'I', input: 'Hi' }).nameOf('messages[1]')).toBe('input');
});

test('items of the previous response have names of their own', () => {
  const { nameOf } = read({ input: [says('user', 'Hi'), says('assistant', 'A'), says('user', [part])] }, 2);
  expect(nameOf('messages[1]')).toBe('previous_response_id');
  expect(nameOf('messages[2].content[0]')).toBe('input[0].content[0]');
});

test('a refusal names the field of the client, in its message and in its violations', () => {
  const { nameOf } = read({ instructions: 'I', input: [says('user', [part])] });
  const error = inClientsWords(new GatewayError(400, 'messages[1].content[0]: no'), { fieldName: nameOf });
  expect(error.message).toBe('input[0].content[0]: no');
  expect(error.metadata).toEqual({ violations: [{ path: 'input[0].content[0]', rule: 'no' }] });
  const other = new GatewayError(400, 'The request is nested too deeply');
  expect(inClientsWords(other, { fieldName: nameOf })).toBe(other);
});
