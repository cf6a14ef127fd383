import { expect, test } from 'vitest';
import { UpstreamError } from '../../providers/dialect.ts';
import type { Candidate } from '../../routing/candidate.ts';
import { createLog } from '../../telemetry/log.ts';
import { readable } from './answer-bounds.ts';
import { createDecoderFaultLog } from './failure.ts';

const candidate = { provider: { slug: 'acme' }, endpoint: { id: 'acme:model' } } as Candidate;

/** The lines of the log about decoder failures. */
function setUp() {
  const lines: string[] = [];
  const logFault = createDecoderFaultLog(createLog('info', { write: (line) => lines.push(line) }));
  const read = (decode: () => unknown, wrap = (error: UpstreamError) => error) => {
    try {
      readable(decode);
    } catch (error) {
      logFault(wrap(error as UpstreamError), candidate);
    }
  };
  return { lines, read };
}

/** A decoder that reads a value without a check: V8 quotes the text in the message. */
const searchIn = (value: unknown) => () => 'name' in (value as object);
const lengthOf = (value: unknown) => () => (value as string).length;

test('a place where a decoder fails is logged once, with its stack frames and without the text that it read', () => {
  const { lines, read } = setUp();
  for (let i = 0; i < 20; i += 1) read(searchIn(`a secret answer ${i}`));
  expect(lines).toHaveLength(1);
  const line = JSON.parse(lines[0]!) as { frames: string[] };
  expect(line).toMatchObject({ level: 'error', type: 'TypeError', provider: 'acme', endpoint: 'acme:model' });
  expect(line.frames[0]).toMatch(/decoder-faults\.test\.ts(?:\?\S*)?:\d+:\d+\)?$/);
  expect(lines[0]).not.toContain('secret');
});

test('a failure at another place is logged too, also at the end of a stream', () => {
  const { lines, read } = setUp();
  read(searchIn('a'));
  read(lengthOf(undefined), (cause) => new UpstreamError('invalid_response', 'ended', { has_ended: true, cause }));
  read(() => 'a'.repeat(-1));
  expect(lines.map((line) => (JSON.parse(line) as { type: string }).type)).toEqual([
    'TypeError',
    'TypeError',
    'RangeError',
  ]);
});

test('logged frames contain no text of an answer, however many lines the error message has', () => {
  const { lines, read } = setUp();
  read(searchIn('first\n    at secret (file:///secret.ts:1:1)\nlast'));
  expect(lines[0]).not.toMatch(/secret/);
});

test('a failure of the provider or of its connection is not logged', () => {
  const { lines, read } = setUp();
  read(() => {
    throw new UpstreamError('invalid_response', 'not JSON', { cause: new SyntaxError('Unexpected token') });
  });
  read(() => {
    throw new UpstreamError('unavailable', 'no connection', { cause: new TypeError('fetch failed') });
  });
  expect(lines).toEqual([]);
});
