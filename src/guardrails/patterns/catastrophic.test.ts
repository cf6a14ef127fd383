import { expect, test } from 'vitest';
import { CATASTROPHES } from '../../../test/filters/catastrophic.ts';
import { compilePattern, patternFault } from './pattern.ts';
import { PatternProgram } from './pattern-program.ts';

/** The number of instructions that are executed to find all matches. */
function stepsOf(pattern: string, text: string): number {
  const compiled = compilePattern(pattern);
  let steps = 0;
  const { prog } = compiled.re2() as unknown as { prog: { inst: { op: number }[] } };
  for (const instruction of prog.inst) {
    const { op } = instruction;
    const get = () => {
      steps += 1;
      return op;
    };
    Object.defineProperty(instruction, 'op', { get });
  }
  const program = new PatternProgram(compiled);
  steps = 0;
  program.find(text);
  program.heldFrom(text);
  return steps;
}

test('each catastrophic pattern is refused, or its cost is linear in the text', () => {
  const refused = CATASTROPHES.filter(({ pattern }) => patternFault(pattern) !== undefined);
  expect(refused.length).toBeGreaterThan(4);
  expect(CATASTROPHES.length).toBeGreaterThanOrEqual(50);
  for (const { pattern, attack } of CATASTROPHES) {
    if (patternFault(pattern) !== undefined) continue;
    const [short, long] = [stepsOf(pattern, attack(1_500)), stepsOf(pattern, attack(3_000))];
    expect(long / Math.max(short, 3_000), pattern).toBeLessThan(2.6);
  }
});

test('if preferred matches take too many passes, the ranges that matches can cover are found', () => {
  const program = new PatternProgram(compilePattern('a.*b|a'));
  const text = 'a'.repeat(3_000);
  const spans = program.find(text);
  expect(spans.length).toBeLessThan(100);
  let end = 0;
  for (const span of spans) {
    expect(span.start).toBe(end);
    end = span.end;
  }
  expect(end).toBe(text.length);
});
