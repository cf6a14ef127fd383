import { describe, expect, test } from 'vitest';
import { type ChatGrammar, checkChatStream } from './chat.ts';

const id = `gen-1700000000-${'a'.repeat(20)}`;
const head = { id, object: 'chat.completion.chunk', created: 1_700_000_000, model: 'a/b', provider: 'A' };
const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3, cost: 0 };
const last = { ...head, choices: [], usage };
const failed = { code: 502, message: 'gone' };
const frames = (...chunks: object[]) =>
  `${chunks.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('')}data: [DONE]\n\n`;
/** With the role only in the first delta. */
const stream = (...chunks: object[]) => {
  let role: string | undefined = 'assistant';
  return frames(
    ...(chunks as { choices?: { delta?: object }[] }[]).map((chunk) => ({
      ...chunk,
      choices: chunk.choices?.map((one) => {
        if (one.delta === undefined) return one;
        const delta = { role, ...one.delta };
        role = undefined;
        return { ...one, delta };
      }),
    })),
  );
};
const choice = (more: object, of: object = {}) => ({
  ...head,
  choices: [{ index: 0, finish_reason: null, native_finish_reason: null, logprobs: null, ...more }],
  ...of,
});
const choiceWith = (delta: object, more: object = {}) => choice({ delta: { content: '', ...delta }, ...more });
const finish = (reason = 'stop') => choiceWith({}, { finish_reason: reason, native_finish_reason: reason });
const call = (index: number, more: object = {}) => ({ index, ...more });
const opened = (index: number) =>
  call(index, { id: `c${index}`, type: 'function', function: { name: 'f', arguments: '' } });
const detail = (more: object) =>
  choiceWith({ reasoning: null, reasoning_details: [{ format: 'unknown', index: 0, ...more }] });
const written = (text: string, more: object = {}) => choice({ text, ...more });
const old = (chunk: object) => ({ ...chunk, object: 'text_completion' });

const right: [string, string, ChatGrammar?][] = [
  ['text', stream(choiceWith({ content: 'a' }), finish(), last)],
  [
    'comments',
    `: WAIT\n\n${stream(choiceWith({ content: 'a' }))}`
      .replace('data: [DONE]', `: WAIT\n\n${frames(finish(), last)}`)
      .replace(/(\[DONE\])\n\n\n\n$/, '$1\n\n'),
  ],
  [
    'calls whose pieces alternate',
    stream(
      choiceWith({ tool_calls: [opened(0)] }),
      choiceWith({ tool_calls: [opened(1), call(0, { function: { arguments: '{}' } })] }),
      finish('tool_calls'),
      last,
    ),
  ],
  [
    'details',
    stream(
      detail({ type: 'reasoning.text', text: 'a' }),
      detail({ type: 'reasoning.text', signature: 's' }),
      finish(),
      last,
    ),
  ],
  ['a late failure', stream(choiceWith({ content: 'a' }), { ...finish('error'), error: failed }, last)],
  ['only a failure', frames({ ...finish('error'), error: failed }, last)],
  ['a debug chunk', stream({ ...head, choices: [], debug: { echo_upstream_body: {} } }, finish(), last)],
  [
    'the form of older completions',
    stream(written('a'), written('', { finish_reason: 'stop' }), last),
    { form: 'prompt' },
  ],
  [
    'completions of two prompts',
    stream(
      old(written('a', { index: 1, finish_reason: 'stop' })),
      old(written('b', { finish_reason: 'length' })),
      old({
        ...last,
        generations: [
          { index: 0, id },
          { index: 1, id },
        ],
      }),
    ),
    { form: 'completions', choices: 2 },
  ],
  [
    'a continuation at another endpoint',
    stream(choiceWith({ content: 'a' }), { ...finish(), provider: 'B' }, { ...last, provider: 'B' }),
    { continued: true },
  ],
];

const good = stream(choiceWith({ content: 'a' }), finish(), last);
const wrong: [string, string, ChatGrammar?][] = [
  ['no end', good.replace('data: [DONE]\n\n', '')],
  ['two ends', `${good}data: [DONE]\n\n`],
  ['a chunk after the end', `${good}data: {}\n\n${good}`],
  ['carriage returns', good.replaceAll('\n', '\r\n')],
  ['an event name', `event: x\n${good}`],
  ['an event of two lines', good.replace('data: {', 'data: {\ndata: ')],
  ['invalid JSON', good.replace('{', '{{')],
  ['an array', `data: []\n\n${good}`],
  ['no usage', stream(finish())],
  ['usage twice', stream(finish(), last, last)],
  ['usage before the finish', stream(last, finish())],
  ['usage with choices', stream(finish(), { ...finish(), usage })],
  ['usage whose total is not the sum', stream(finish(), { ...last, usage: { ...usage, total_tokens: 4 } })],
  ['a cost of type string', stream(finish(), { ...last, usage: { ...usage, cost: '0' } })],
  ['no finish reason', stream(choiceWith({ content: 'a' }), last)],
  ['two finish reasons', stream(finish(), finish(), last)],
  ['text after the finish reason', stream(finish(), choiceWith({ content: 'a' }), last)],
  ['an unknown finish reason', stream(finish('end_turn'), last)],
  [
    'a native finish reason before the finish reason',
    stream(choiceWith({}, { native_finish_reason: 'x' }), finish(), last),
  ],
  ['the finish reason tool_calls without calls', stream(finish('tool_calls'), last)],
  ['another id', stream(choiceWith({ content: 'a' }), { ...finish(), id: id.replace('a', 'b') }, last)],
  ['an id of another form', stream(...[finish(), last].map((one) => ({ ...one, id: 'chatcmpl-1' })))],
  ['another object', stream({ ...finish(), object: 'chat.completion' }, last)],
  ['another creation time', stream(finish(), { ...last, created: 1 })],
  ['another model', stream(finish(), { ...last, model: 'c/d' })],
  ['another provider', stream(finish(), { ...last, provider: 'B' })],
  ['an unknown field', stream({ ...finish(), extra: 1 }, last)],
  [
    'an extension',
    stream(choiceWith({ content: 'a', annotations: [{ type: 'file', file: { ext: {} } }] }), finish(), last),
  ],
  ['a choice without delta', stream(choice({}), finish(), last)],
  ['two choices', stream({ ...head, choices: [...finish().choices, ...finish().choices] }, last)],
  ['no choices', stream({ ...head, choices: [] }, finish(), last)],
  ['the index of a choice that was not requested', stream(choiceWith({ content: 'a' }, { index: 1 }), finish(), last)],
  ['a first delta without a role', frames(choiceWith({}), finish(), last)],
  ['a repeated role', stream(choiceWith({}), choiceWith({ role: 'assistant' }), finish(), last)],
  ['a delta without content', stream(choiceWith({ content: null }), finish(), last)],
  ['a delta with an unknown field', stream(choiceWith({ prefix: true }), finish(), last)],
  ['an empty list', stream(choiceWith({ tool_calls: [] }), finish(), last)],
  ['a call without a type', stream(choiceWith({ tool_calls: [{ ...opened(0), type: undefined }] }), finish(), last)],
  ['a call without an id', stream(choiceWith({ tool_calls: [{ ...opened(0), id: '' }] }), finish(), last)],
  [
    'a call without a name',
    stream(choiceWith({ tool_calls: [{ ...opened(0), function: { arguments: '' } }] }), finish(), last),
  ],
  ['a call whose index skips one', stream(choiceWith({ tool_calls: [opened(1)] }), finish(), last)],
  [
    'two calls with one id',
    stream(choiceWith({ tool_calls: [opened(0), { ...opened(0), index: 1 }] }), finish(), last),
  ],
  ['a call that is opened twice', stream(choiceWith({ tool_calls: [opened(0), opened(0)] }), finish(), last)],
  [
    'arguments that are not a string',
    stream(choiceWith({ tool_calls: [opened(0), call(0, { function: { arguments: {} } })] }), finish(), last),
  ],
  ['a reasoning detail without a type', stream(detail({ type: 'thinking' }), finish(), last)],
  ['a reasoning detail without a format', stream(detail({ type: 'reasoning.text', format: null }), finish(), last)],
  [
    'a reasoning detail that changes',
    stream(detail({ type: 'reasoning.text' }), detail({ type: 'reasoning.encrypted', data: '' }), finish(), last),
  ],
  ['a reasoning detail with an unknown field', stream(detail({ type: 'reasoning.text', ext: 1 }), finish(), last)],
  [
    'reasoning details without the reasoning text',
    stream(choiceWith({ reasoning_details: [{ type: 'reasoning.text', format: 'x' }] }), finish(), last),
  ],
  [
    'an error without the finish reason error',
    stream({ ...choiceWith({ content: 'a' }), error: failed }, finish(), last),
  ],
  ['an error without a code', stream({ ...finish('error'), error: { message: 'x' } }, last)],
  ['an error whose code is a string', stream({ ...finish('error'), error: { ...failed, code: 'server_error' } }, last)],
  [
    'a debug chunk in the middle',
    stream(choiceWith({ content: 'a' }), { ...head, choices: [], debug: { echo_upstream_body: {} } }, finish(), last),
  ],
  ['several generation ids of one prompt', stream(finish(), { ...last, generations: [{ index: 0, id }] })],
  ['metadata before the end', stream({ ...finish(), gateway_metadata: {} }, last)],
  ['deltas in older completions', good, { form: 'prompt' }],
  ['text instead of deltas', stream(written('a', { finish_reason: 'stop' }), last)],
  ['chat chunks in older completions', stream(written('a', { finish_reason: 'stop' }), last), { form: 'completions' }],
  [
    'one of two prompts unfinished',
    stream(
      old(written('a', { finish_reason: 'stop' })),
      old({
        ...last,
        generations: [
          { index: 0, id },
          { index: 1, id },
        ],
      }),
    ),
    { form: 'completions', choices: 2 },
  ],
];

describe('the grammar of chat streams', () => {
  test.each(right)('accepts %s', (_title, text, grammar) => {
    expect(() => checkChatStream(text, grammar)).not.toThrow();
  });

  test.each(wrong)('refuses %s', (_title, text, grammar) => {
    expect(() => checkChatStream(text, grammar)).toThrow();
  });
});
