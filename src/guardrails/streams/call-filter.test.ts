import { expect, test } from 'vitest';
import type { ChatChunk } from '../../schemas/inner.ts';
import { CallFilter } from './call-filter.ts';
import type { Finder } from './stream-filter.ts';

/** Replaces `secret`, and holds back each `s` that could begin it. */
const finder: Finder = {
  context_chars: 0,
  find: (text, from) =>
    [...text.matchAll(/secret/g)]
      .filter(({ index }) => index >= from)
      .map(({ index }) => ({ start: index, end: index + 6, text: '[X]' })),
  heldFrom: (text) => {
    const start = text.search(/s(e(c(r(e)?)?)?)?$/);
    return start < 0 ? text.length : start;
  },
  settled() {},
};

const call = (index: number, text: string, n: number): ChatChunk => ({
  delta: { tool_calls: [{ index, function: { arguments: text } }] },
  ext: { slot: { n } },
});
const delta = (text: string, n: number): ChatChunk => ({
  delta: {},
  ext: { slot: { n, raw: { type: 'code.delta', delta: text } } },
});

const shownText = (chunks: readonly ChatChunk[]) =>
  chunks.map((chunk) => chunk.delta.tool_calls?.[0]?.function.arguments ?? chunk.ext?.slot?.raw?.['delta'] ?? '');

test('the arguments of two calls are filtered separately, each over all its chunks', () => {
  const filter = new CallFilter(finder, (chunk) => chunk);
  const out: ChatChunk[] = [];
  filter.takeCall(call(0, '{"a":"se', 0), out);
  filter.takeCall(call(1, '{"b":"sec', 1), out);
  filter.takeCall(call(0, 'cret"}', 0), out);
  filter.takeCall(call(1, 'ond"}', 1), out);
  filter.endAll(out);
  const of = (index: number) => out.filter((chunk) => chunk.delta.tool_calls?.[0]?.index === index);
  expect(shownText(of(0)).join('')).toBe('{"a":"[X]"}');
  expect(shownText(of(1)).join('')).toBe('{"b":"second"}');
});

test('the end of a block shows what its text held back, and leaves other blocks open', () => {
  const filter = new CallFilter(finder, (chunk) => chunk);
  const out: ChatChunk[] = [];
  filter.takeRaw(delta('a sec', 0), { n: 0, raw: delta('a sec', 0).ext!.slot!.raw! }, out);
  filter.takeRaw(delta('b sec', 1), { n: 1, raw: delta('b sec', 1).ext!.slot!.raw! }, out);
  expect(shownText(out)).toEqual(['a ', 'b ']);
  filter.endBlock(0, out);
  expect(shownText(out)).toEqual(['a ', 'b ', 'sec']);
  filter.takeRaw(delta('ret', 1), { n: 1, raw: delta('ret', 1).ext!.slot!.raw! }, out);
  filter.endAll(out);
  expect(shownText(out).join('')).toBe('a b sec[X]');
});
