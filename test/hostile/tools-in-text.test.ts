/**
 * Parsing tool calls from text: the work grows linearly with the text, for anything that a model writes and any split.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ToolCallParser } from '../../src/providers/tool-template/parser.ts';
import { startWorkCounter, type WorkCounter } from './counted-work.ts';

const CALL = '<tool_call>{"name":"look","arguments":{}}</tool_call>';
const TEXTS: Record<string, (many: number) => string> = {
  calls: (many) => CALL.repeat(many),
  'opening tags': (many) => '<tool_call>'.repeat(many),
  'objects that begin': (many) => '<tool_call>{'.repeat(many),
  'calls with objects that begin after them': (many) => `${CALL}{"`.repeat(many),
  'calls with half a closing tag after them': (many) => `${CALL}</`.repeat(many),
  'tags inside a string that does not end': (many) =>
    `<tool_call>{"name":"look","a":"${'<tool_call>{\\"'.repeat(many)}`,
  'line breaks inside strings': (many) => `<tool_call>{"name":"look","arguments":{"a":"${'\n'.repeat(many)}"}}`,
  'white space before tags': (many) => `${' '.repeat(63)}<tool_cal`.repeat(many),
  fences: (many) => '<tool_call>```json\n'.repeat(many),
};

let counter: WorkCounter;
beforeAll(async () => {
  counter = await startWorkCounter();
});
afterAll(() => counter.stop());

const TIMES = 6;

function read(pieces: readonly string[]): void {
  const parser = new ToolCallParser({ names: ['look'], is_forced: true, is_single: false });
  for (const piece of pieces) parser.push(piece);
  parser.end();
}

describe.each([
  ['at once', 300, (text: string) => [text]],
  ['character by character', 60, (text: string) => [...text]],
] as const)('%s', (_way, many, cut) => {
  test.each(Object.entries(TEXTS))('%s', async (_name, textOf) => {
    const work = async (count: number) => {
      const pieces = cut(textOf(count));
      const steps = await counter.steps(() => read(pieces));
      return {
        steps: [...steps.values()].reduce((sum, one) => sum + one, 0),
        bytes: await counter.bytes(() => read(pieces)),
      };
    };
    await work(many);
    const few = await work(many);
    const more = await work(many * TIMES);
    expect(more.steps / few.steps).toBeLessThan(TIMES * 1.5);
    // Sampling counts small sums roughly.
    expect(more.bytes).toBeLessThan(Math.max(few.bytes, 1e6) * TIMES * 2);
  });
});
