import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { inTier } from '../../test/tier.ts';
import type { Message } from '../schemas/inner.ts';
import { compressMiddleOut, cutText } from './middle-out.ts';

const textLength = ({ content, tool_calls }: Message): number => {
  const texts =
    typeof content === 'string'
      ? [content]
      : (content ?? []).map((part) => (part.type === 'text' ? part.text : '      '));
  const calls = (tool_calls ?? []).map((call) => call.function.arguments);
  return [...texts, ...calls].join('').length + 4;
};
const room = (tokensMax: number, messagesMax = Number.POSITIVE_INFINITY) => ({
  tokens_max: tokensMax,
  messages_max: messagesMax,
  weigh: textLength,
});
const user = (content: string): Message => ({ role: 'user', content });
const assistant = (content: string): Message => ({ role: 'assistant', content });
const calls = (...ids: string[]): Message => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'f', arguments: '{"a":1}' } })),
  reasoning_details: [{ type: 'reasoning.text', text: 'why', signature: 's' }],
});
const result = (id: string, content = 'r'): Message => ({ role: 'tool', tool_call_id: id, content });
const names = (messages: readonly Message[] | undefined) => messages?.map(({ content }) => content);

test('a conversation that fits is unchanged', () => {
  const messages = [user('hello')];
  expect(compressMiddleOut(messages, room(9))).toEqual({ messages, dropped: 0, cut: 0 });
});

test('whole turns in the middle are removed first, equally far from start and end', () => {
  const messages = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((letter) => user(letter.repeat(6)));
  const compressed = compressMiddleOut(messages, room(40));
  expect(names(compressed?.messages)).toEqual(['aaaaaa', 'bbbbbb', 'ffffff', 'gggggg']);
  expect(compressed).toMatchObject({ dropped: 3, cut: 0 });
});

test('a bound of messages keeps half from the start and half from the end', () => {
  const messages = Array.from({ length: 1_500 }, (_, at) => user(String(at)));
  const compressed = compressMiddleOut(messages, room(Number.POSITIVE_INFINITY, 1_000));
  expect(names(compressed?.messages)).toEqual(
    [...Array(500).keys(), ...Array.from({ length: 500 }, (_, at) => at + 1_000)].map(String),
  );
});

test('instructions stay at any position, and so does the last user message', () => {
  const messages: Message[] = [
    { role: 'system', content: 'rules' },
    user('x'.repeat(50)),
    { role: 'developer', content: 'more' },
    assistant('y'.repeat(50)),
    user('question'),
    calls('1'),
    result('1', 'z'.repeat(50)),
    calls('2'),
    result('2', 'end'),
  ];
  const compressed = compressMiddleOut(messages, room(80));
  expect(compressed?.messages).toEqual([messages[0], messages[2], messages[4], messages[7], messages[8]]);
});

test('a call is removed with its results and its reasoning', () => {
  const messages = [user('q'), calls('1', '2'), result('1', 'x'.repeat(90)), result('2'), assistant('a'), user('n')];
  const compressed = compressMiddleOut(messages, room(40));
  expect(compressed?.messages).toEqual([messages[0], messages[4], messages[5]]);
});

test('a text that is too long is cut in its middle, with a note of the missing length', () => {
  const text = `${'a'.repeat(500)}${'b'.repeat(500)}`;
  const compressed = compressMiddleOut([user('short'), assistant('also short'), user(text)], room(200));
  const [last] = compressed!.messages.slice(-1);
  expect(last!.content).toMatch(/^a+\n\[… (\d+) characters left out …\]\nb+$/);
  const [, missing] = /… (\d+) /.exec(last!.content as string)!;
  expect((last!.content as string).replace(/\n\[.*\]\n/s, '').length + Number(missing)).toBe(1_000);
  expect(compressed!.messages.reduce((sum, one) => sum + textLength(one), 0)).toBeLessThanOrEqual(200);
});

test('short texts beside a long one stay whole', () => {
  const messages: Message[] = [{ role: 'system', content: 'short rules' }, user('x'.repeat(5_000))];
  const compressed = compressMiddleOut(messages, room(500));
  expect(compressed?.messages[0]).toBe(messages[0]);
  expect(compressed).toMatchObject({ dropped: 0, cut: 1 });
});

test('content other than text cannot be shortened', () => {
  const long = { ...calls('1') };
  long.tool_calls![0]!.function.arguments = JSON.stringify({ a: 'x'.repeat(500) });
  expect(compressMiddleOut([user('q'), long, result('1')], room(100))).toBeUndefined();
});

test.each([0, 1, 5, 60, 61, 62, 63, 64])('a text cut to %d characters has no split surrogate pair', (most) => {
  const cut = cutText('😀'.repeat(100), most);
  expect(cut.isWellFormed()).toBe(true);
  if (most >= 60) expect(cut.length).toBeLessThanOrEqual(most);
});

/** Conversations as clients send them: every result after its call. */
const conversation = fc
  .array(
    fc.oneof(
      fc.string({ maxLength: 60 }).map((text) => [user(text)]),
      fc.string({ maxLength: 60 }).map((text) => [assistant(text)]),
      fc.string({ maxLength: 20 }).map((text): Message[] => [{ role: 'system', content: text }]),
      fc.array(fc.string({ maxLength: 200 }), { minLength: 1, maxLength: 3 }).map((texts): Message[] => {
        const ids = texts.map((_, at) => `id${at}`);
        return [calls(...ids), ...texts.map((text, at) => result(ids[at]!, text))];
      }),
      fc.string({ maxLength: 2_000, unit: 'binary' }).map((text): Message[] => [
        {
          role: 'user',
          content: [
            { type: 'text', text },
            { type: 'image_url', image_url: { url: 'data:,' } },
          ],
        },
      ]),
    ),
    { minLength: 1, maxLength: 30 },
  )
  .map((turns) => turns.flat());

describe('any conversation', () => {
  test('fits after compression, in order, with its ends, its instructions, and calls with their results', () => {
    let shortened = 0;
    fc.assert(
      fc.property(
        conversation,
        fc.integer({ min: 50, max: 3_000 }),
        fc.integer({ min: 3, max: 40 }),
        (messages, tokens, count) => {
          const compressed = compressMiddleOut(messages, room(tokens, count));
          if (compressed === undefined) {
            // Only the parts that must stay may be too large: calls and images, the notes, or their number.
            return;
          }
          const { messages: kept, dropped } = compressed;
          shortened += Number(kept.length < messages.length || compressed.cut > 0);
          expect(kept.reduce((sum, one) => sum + textLength(one), 0)).toBeLessThanOrEqual(tokens);
          expect(kept.length).toBeLessThanOrEqual(count);
          expect(dropped).toBe(messages.length - kept.length);
          // Each is a message of the conversation, whole or cut, after the previous one.
          let at = -1;
          const places = kept.map((message) => {
            at = messages.findIndex((one, n) => n > at && isOf(message, one));
            return at;
          });
          expect(places).not.toContain(-1);
          expect(places.at(-1)).toBe(messages.length - 1);
          const instructions = (all: readonly Message[]) => all.filter(({ role }) => role === 'system').length;
          expect(instructions(kept)).toBe(instructions(messages));
          for (const [n, { role, tool_calls }] of kept.entries()) {
            if (tool_calls)
              expect(kept.slice(n + 1, n + 1 + tool_calls.length).map((one) => one.tool_call_id)).toEqual(
                tool_calls.map(({ id }) => id),
              );
            if (role === 'tool')
              expect(kept[n - 1]!.role === 'tool' || kept[n - 1]!.tool_calls !== undefined).toBe(true);
          }
          expect(compressMiddleOut(messages, room(tokens, count))).toEqual(compressed);
        },
      ),
      { numRuns: inTier(125, 500), seed: 7 },
    );
    expect(shortened).toBeGreaterThan(inTier(25, 100));
  });
});

/** The same message, or the same with less text. */
function isOf(kept: Message, original: Message): boolean {
  if (kept === original) return true;
  const { content: _, ...rest } = kept;
  const { content: __, ...others } = original;
  return JSON.stringify(rest) === JSON.stringify(others) && JSON.stringify(kept.content).includes('left out');
}
