/** Features of Responses requests beyond functions and text, over upstreams of every wire. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/schemas/json.ts';
import { array, object } from '../readings/recordings.ts';
import { modelOf, type SdkGateway, startSdkGateway, wires } from '../sdks/sdk-gateway.ts';

let site: SdkGateway;
beforeAll(async () => {
  site = await startSdkGateway();
});
afterAll(() => site.stop());

async function ask(body: JsonObject): Promise<JsonObject> {
  const headers = { 'x-gateway-experimental-metadata': 'enabled' };
  const response = await site.gateway.call('POST', '/responses', body, headers);
  const answer = (await response.json()) as JsonObject;
  expect(response.status, JSON.stringify(answer)).toBe(200);
  expect(answer['status']).toBe('completed');
  return answer;
}

const callsOf = ({ output }: JsonObject) =>
  array(output)
    .map(object)
    .filter(({ type }) => type === 'function_call' || type === 'custom_tool_call');

const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const NAMESPACE = {
  type: 'namespace',
  name: 'maps',
  description: 'Maps.',
  tools: [{ type: 'function', name: 'find', parameters, strict: false }],
};
const CUSTOM = { type: 'custom', name: 'patch', description: 'Writes a patch.' };

/** The sandbox of the API's own wire knows only functions. */
const others = wires.filter((wire) => wire !== 'openai-responses');

describe.each(others)('over %s', (wire) => {
  const model = modelOf(wire, 'tools');
  const user = { role: 'user', content: 'Go.' };

  /** Answers every call, and expects that the model receives the results. */
  async function goOn(input: JsonObject[], { output }: JsonObject, fields: JsonObject): Promise<void> {
    const calls = array(output).map(object);
    const results = callsOf({ output }).map(({ type, call_id }) => ({
      type: `${type}_output`,
      call_id,
      output: 'Done.',
    }));
    const last = await ask({ model, ...fields, input: [...input, ...calls, ...results] });
    expect(JSON.stringify(last['output'])).toContain('The tools answered: Done.');
  }

  test('a custom tool is called with a text', async () => {
    const fields = { tools: [CUSTOM], tool_choice: { type: 'custom', name: 'patch' } };
    const first = await ask({ model, input: [user], ...fields });
    expect(callsOf(first)).toMatchObject([{ type: 'custom_tool_call', name: 'patch', input: expect.any(String) }]);
    await goOn([user], first, { tools: [CUSTOM] });
  });

  test('a tool of a namespace is called by its own name', async () => {
    const first = await ask({ model, input: [user], tools: [NAMESPACE] });
    expect(callsOf(first)).toMatchObject([{ type: 'function_call', name: 'find', namespace: 'maps' }]);
    await goOn([user], first, { tools: [NAMESPACE] });
  });

  test('tools of the conversation can be called', async () => {
    const late = { type: 'additional_tools', role: 'developer', tools: [NAMESPACE, CUSTOM] };
    const first = await ask({ model, input: [user, late], parallel_tool_calls: true });
    expect(callsOf(first)[0]).toMatchObject({ type: 'function_call', name: 'find', namespace: 'maps' });
    await goOn([user, late], first, {});
  });
});

test.each(wires)('%s: tools that do not run here are reported', async (wire) => {
  const answer = await ask({
    model: modelOf(wire, 'echo'),
    input: 'Hello',
    tools: [{ type: 'image_generation' }, { type: 'gateway:image_generation' }],
  });
  const metadata = JSON.stringify(answer['gateway_metadata']);
  for (const field of ['tools[0]', 'tools[1]']) expect(metadata).toContain(field);
});
