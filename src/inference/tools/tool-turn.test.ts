import { describe, expect, test } from 'vitest';
import { accumulate } from '../../schemas/accumulate.ts';
import { chunksOf } from '../../schemas/chunks.ts';
import type { ChatChunk, ChatCompletion, Message, ReasoningDetail } from '../../schemas/inner.ts';
import { declareTools } from './declared-tools.ts';
import type { ServerTool } from './server-tools.ts';
import { ToolTurn } from './tool-turn.ts';

const tool: ServerTool = {
  type: 'gateway:web_search',
  declaration: { type: 'function', function: { name: 'web_search' } },
  cost_nano_max: 0,
  run: () => Promise.reject(new Error('not run here')),
};
const ENTRY = { type: 'gateway:web_search' };

function newTurn(): ToolTurn {
  const request = { messages: [], tools: [ENTRY] };
  const tools = declareTools(request, { of: (entry) => (entry.type === tool.type ? tool : undefined) });
  tools.declare(request);
  return new ToolTurn(tools);
}

function step(message: Omit<Message, 'role'>, finishReason: 'stop' | 'tool_calls' | 'length'): ChatCompletion {
  return {
    choices: [
      {
        index: 0,
        message: { role: 'assistant', ...message },
        finish_reason: finishReason,
        native_finish_reason: 'end',
      },
    ],
    created: 1,
    ext: { wire: 'anthropic-messages', rest: {} },
  };
}
const call = (name: string, id = name) => ({ id, type: 'function' as const, function: { name, arguments: '{}' } });
const signed = (text: string) => ({ type: 'reasoning.text' as const, text, signature: `of ${text}`, index: 0 });

/** The whole answer that a client gets for these steps. */
function shown(steps: readonly ChatCompletion[], turn = newTurn()): ChatCompletion {
  const chunks: ChatChunk[] = [];
  for (const [at, one] of steps.entries()) {
    chunks.push(...turn.add(chunksOf(one)));
    if (at < steps.length - 1) turn.goOn();
  }
  chunks.push(...turn.finish(true));
  return accumulate(chunks, 1);
}

const SEARCHING = step(
  { content: 'Look.', reasoning_details: [signed('Hm')], tool_calls: [call('web_search')] },
  'tool_calls',
);

test('calls run by the gateway are hidden, texts are separated, and ordinals continue', () => {
  const last = step(
    { content: 'Done.', reasoning_details: [signed('So')], tool_calls: [call('weather')] },
    'tool_calls',
  );
  const { message, finish_reason } = shown([SEARCHING, last]).choices[0];
  expect(message.content).toEqual([
    { type: 'text', text: 'Look.' },
    { type: 'text', text: '\n\nDone.' },
  ]);
  expect(message.tool_calls).toMatchObject([{ id: 'weather' }]);
  expect(message.reasoning_details).toEqual([
    { type: 'reasoning.text', text: 'Hm', index: 0 },
    { type: 'reasoning.text', text: 'So', index: 1 },
  ]);
  expect(message.reasoning).toBe('Hm\n\nSo');
  expect(finish_reason).toBe('tool_calls');
});

test('the streamed reasoning equals the reasoning of the whole answer', () => {
  const turn = newTurn();
  const chunks = turn.add(chunksOf(SEARCHING));
  turn.goOn();
  chunks.push(...turn.add(chunksOf(step({ reasoning_details: [signed('So')], content: 'x' }, 'stop'))));
  expect(chunks.map(({ delta }) => delta.reasoning ?? '').join('')).toBe('Hm\n\nSo');
});

test('the stored turn has the opaque state of its last step alone', () => {
  const turn = newTurn();
  const completion = shown([SEARCHING, step({ content: 'Done.', reasoning_details: [signed('So')] }, 'stop')], turn);
  expect(turn.withState(completion).choices[0].message.reasoning_details).toEqual([
    { type: 'reasoning.text', text: 'Hm', index: 0 },
    { type: 'reasoning.text', text: 'So', signature: 'of So', index: 1 },
  ]);
});

test('hidden encrypted reasoning leaves no gap in the ordinals', () => {
  const thinking: ReasoningDetail[] = [
    { type: 'reasoning.encrypted', data: 'x', index: 0 },
    { type: 'reasoning.text', text: 'Hm', signature: 's', index: 1 },
  ];
  const search = step({ tool_calls: [call('web_search')], reasoning_details: thinking }, 'tool_calls');
  const after = step({ content: 'x', reasoning_details: thinking }, 'stop');
  expect(shown([search, after]).choices[0].message.reasoning_details).toEqual([
    { type: 'reasoning.text', text: 'Hm', index: 0 },
    { type: 'reasoning.text', text: 'Hm', index: 1 },
  ]);
});

test('an answer without a call run by the gateway keeps all of its reasoning', () => {
  const details: ReasoningDetail[] = [
    { type: 'reasoning.text', text: 'Hm', signature: 's', index: 0 },
    { type: 'reasoning.encrypted', data: 'x', index: 1 },
  ];
  const { message } = shown([step({ content: 'x', reasoning_details: details }, 'stop')]).choices[0];
  expect(message.reasoning_details).toEqual(details);
});

describe('another step', () => {
  const ends = (completion: ChatCompletion, prepare?: (turn: ToolTurn) => void) => {
    const turn = newTurn();
    prepare?.(turn);
    turn.add(chunksOf(completion));
    return turn.stepEnd().calls.length;
  };
  test('follows if only tools of the gateway are called', () => expect(ends(SEARCHING)).toBe(1));
  test('follows also if the finish reason is stop', () =>
    expect(ends(step({ tool_calls: [call('web_search')] }, 'stop'))).toBe(1));
  test('does not follow if a client tool is called as well', () =>
    expect(ends(step({ tool_calls: [call('web_search'), call('weather')] }, 'tool_calls'))).toBe(0));
  test('does not follow if the call was cut off', () =>
    expect(ends(step({ tool_calls: [call('web_search')] }, 'length'))).toBe(0));
  test('does not follow after the last allowed step', () =>
    expect(ends(SEARCHING, (turn) => turn.endIsNext(true))).toBe(0));
  test('does not follow if no tool is called', () => expect(ends(step({ content: 'x' }, 'stop'))).toBe(0));
});

test('an end at unexecuted gateway calls has the finish reason stop', () => {
  const turn = newTurn();
  turn.endIsNext(true);
  expect(shown([SEARCHING], turn).choices[0].finish_reason).toBe('stop');
});
