import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sandboxModels, sandboxProviders } from '../../sandbox/catalog.ts';
import { type Sandbox, startSandbox } from '../../sandbox/server.ts';
import { dialects } from '../../src/providers/dialects.ts';
import type { Wire } from '../../src/schemas/inner.ts';
import { startGateway, type TestGateway } from '../harness.ts';

/**
 * A conversation that moves between providers: its first turn, with reasoning and two parallel tool calls, is answered
 * over one wire, and the tools' results go to another. The sandbox refuses what the real services refuse.
 */

let sandbox: Sandbox;
let gateway: TestGateway;

beforeAll(async () => {
  sandbox = await startSandbox();
  const providers = sandboxProviders(sandbox.url);
  gateway = await startGateway({
    yaml: JSON.stringify({ bundled_catalog: false, providers, models: sandboxModels }),
  });
});

afterAll(async () => {
  await gateway.stop();
  await sandbox.stop();
});

/** The model that calls tools at a provider of this wire, and the provider. */
function speaking(wire: Wire): { model: string; provider: { only: string[] } } | undefined {
  for (const [name, { dialect }] of Object.entries(sandboxProviders('http://localhost'))) {
    if (dialect !== wire) continue;
    for (const [model, { endpoints }] of Object.entries(sandboxModels)) {
      if (!model.endsWith('tools')) continue;
      if (endpoints.some(({ provider }) => provider === name)) return { model, provider: { only: [name] } };
    }
  }
  return undefined;
}

interface ToolCall {
  id: string;
  function: { name: string; arguments: string };
}

interface Message {
  role: string;
  content: unknown;
  reasoning?: string | null;
  reasoning_details?: object[];
  tool_calls?: ToolCall[];
  tool_call_id?: string;
}

const tools = ['get_weather', 'get_time'].map((name) => ({
  type: 'function',
  function: {
    name,
    parameters: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
  },
}));

async function ask(wire: Wire, messages: Message[]): Promise<Message> {
  const response = await gateway.call('POST', '/chat/completions', {
    ...speaking(wire),
    messages,
    tools,
    reasoning: { effort: 'high' },
    max_completion_tokens: 8_000,
  });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  const { choices } = JSON.parse(text) as { choices: [{ message: Message; finish_reason: string }] };
  return choices[0].message;
}

const results = ({ tool_calls = [] }: Message): Message[] =>
  tool_calls.map(({ id, function: { name } }) => ({ role: 'tool', tool_call_id: id, content: `${name} says 7` }));

/** The turn that a client sends back if it keeps only text and calls. */
const bare = ({ content, tool_calls }: Message): Message => ({
  role: 'assistant',
  content,
  ...(tool_calls ? { tool_calls } : {}),
});

const question: Message = { role: 'user', content: 'What are weather and time in Quito?' };
const wires = [...dialects.keys()];

test('the sandbox has a model that calls tools on every wire', () => {
  expect(wires.filter((wire) => speaking(wire) === undefined)).toEqual([]);
});

describe.each(wires)('answered over %s, the turn continues over', (first) => {
  test.each(wires)('%s', async (second) => {
    for (const keep of [(message: Message) => message, bare]) {
      const called = await ask(first, [question]);
      expect(called.tool_calls?.map(({ function: { name } }) => name)).toEqual(['get_weather', 'get_time']);
      expect(called.reasoning_details).not.toEqual([]);
      const history = [question, keep(called), ...results(called)];
      const answered = await ask(second, history);
      expect(answered.content).toBe('The tools answered: get_weather says 7; get_time says 7');
      // And back, with both turns in the history.
      const again = await ask(first, [...history, keep(answered), { role: 'user', content: 'And in Lima?' }]);
      expect(again.tool_calls).toHaveLength(2);
      // A call in the conversation keeps its name.
      const known = new Set(called.tool_calls?.map(({ id }) => id));
      expect(again.tool_calls?.filter(({ id }) => known.has(id))).toEqual([]);
    }
  });
});
