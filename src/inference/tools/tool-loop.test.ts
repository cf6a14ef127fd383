import { expect, test } from 'vitest';
import { messagesClient } from '../../api/messages/client.ts';
import type { Candidate } from '../../routing/plan.ts';
import { chunksOf } from '../../schemas/chunks.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import type { CallState } from '../state.ts';
import { declareTools } from './declared-tools.ts';
import type { ServerTool } from './server-tools.ts';
import { createToolLoop } from './tool-loop.ts';

const tool: ServerTool = {
  type: 'gateway:web_search',
  declaration: { type: 'function', function: { name: 'web_search' } },
  cost_nano_max: 0,
  run: () => Promise.reject(new Error('not run here')),
};
const outcome = { content: 'Found', sources: [], cost_nano: 0, counts: {} };
const candidate = {
  provider: { slug: 'acme', dialect: 'anthropic-messages' },
  endpoint: {},
} as unknown as Candidate;

/** The request of the second step of a call. */
async function secondRequest(fields: Partial<ChatRequest>): Promise<ChatRequest> {
  const request: ChatRequest = { messages: [{ role: 'user', content: 'Hi' }], tools: [{ type: tool.type }], ...fields };
  const tools = declareTools(request, { of: (entry) => (entry.type === tool.type ? tool : undefined) });
  tools.declare(request);
  const loop = createToolLoop({
    runTools: (_state, calls) => Promise.resolve(calls.map((one) => ({ ...one, args: {}, outcome }))),
    clock: { nowMs: () => 0, monotonicMs: () => 0 },
    total_ms_max: 1_000,
    states: { recorder: () => undefined },
    settlement: { endStep() {} },
    attempts: { reportSuccess() {} },
  });
  const call = { request, stages: [], generation_id: 'gen-1' };
  const state = {
    call,
    step: 1,
    sources: [],
    parts: [],
    fees: [],
    attempts: [],
    fitting: { tools },
  } as unknown as CallState;
  const answer = loop.begin(state, tools);
  answer.turn.add(
    chunksOf({
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: null,
            reasoning_details: [{ type: 'reasoning.text', text: 'Hm', signature: 'sealed', index: 0 }],
            tool_calls: [{ id: 'c', type: 'function', function: { name: 'web_search', arguments: '{}' } }],
          },
          finish_reason: 'tool_calls',
          native_finish_reason: null,
        },
      ],
      created: 0,
      ext: { wire: 'anthropic-messages', rest: {} },
    }),
  );
  const end = answer.turn.stepEnd();
  loop.endStep(state, answer, end, { candidate } as never);
  await loop.run(state, answer, end, { candidate } as never);
  return answer.call.request;
}

test('the next step contains the turn, bound to the account that produced it, and the results of its calls', async () => {
  const { messages } = await secondRequest({});
  expect(messages.slice(1)).toMatchObject([
    {
      role: 'assistant',
      reasoning_details: [{ text: 'Hm', signature: 'sealed' }],
      tool_calls: [{ id: 'c' }],
      ext: { issuer: 'acme' },
    },
    { role: 'tool', tool_call_id: 'c', content: 'Found' },
  ]);
});

test.each<[ChatRequest['tool_choice'], ChatRequest['tool_choice']]>([
  [undefined, null],
  ['auto', 'auto'],
  ['required', null],
  [{ type: 'gateway:web_search' }, null],
  [{ type: 'function', function: { name: 'web_search' } }, null],
  [
    { type: 'function', function: { name: 'weather' } },
    { type: 'function', function: { name: 'weather' } },
  ],
])('a tool choice of %j becomes %j in the next step', async (choice, next) => {
  expect((await secondRequest(choice === undefined ? {} : { tool_choice: choice })).tool_choice).toEqual(next);
});

test("a tool choice that no longer applies is removed from the fields of the client's own wire too", async () => {
  const ext = {
    wire: 'anthropic-messages',
    client: messagesClient,
    rest: { tool_choice: { type: 'any' }, top: 1 },
  } as const;
  expect((await secondRequest({ tool_choice: 'required', ext })).ext?.rest).toEqual({ top: 1 });
});

test('the last step cannot choose a tool', async () => {
  expect(
    (await secondRequest({ max_tool_calls: 1, stop_server_tools_when: [{ type: 'step_count_is', step_count: 1 }] }))
      .tool_choice,
  ).toBe('none');
});
