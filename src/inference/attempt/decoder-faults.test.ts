import { expect, test } from 'vitest';
import { UpstreamError } from '../../providers/dialect.ts';
import type { Candidate } from '../../routing/candidate.ts';
import { createLog } from '../../telemetry/log.ts';
import { readable } from './answer-bounds.ts';
import { createDecoderFaultLog } from './failure.ts';

const candidate = { provider: { slug: 'acme' }, endpoint: { id: 'acme:model' } } as Candidate;

/** What the log has of failures of reading. */
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

/** A decoder that does not look at what it has before it: V8 quotes the text in the message. */
const searchIn = (value: unknown) => () => 'name' in (value as object);
const lengthOf = (value: unknown) => () => (value as string).length;

test('a place of a decoder where it failed is logged once, with its frames and without what was read', () => {
  const { lines, read } = setUp();
  for (let i = 0; i < 20; i += 1) read(searchIn(`a secret answer ${i}`));
  expect(lines).toHaveLength(1);
  const line = JSON.parse(lines[0]!) as { frames: string[] };
  expect(line).toMatchObject({ level: 'error', type: 'TypeError', provider: 'acme', endpoint: 'acme:model' });
  expect(line.frames[0]).toMatch(/decoder-faults\.test\.ts(?:\?\S*)?:\d+:\d+\)?$/);
  expect(lines[0]).not.toContain('secret');
});

test('another place is another line, also where the failure is the end of a stream', () => {
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

test('frames hold no text of an answer, however many lines its message has', () => {
  const { lines, read } = setUp();
  read(searchIn('first\n    at secret (file:///secret.ts:1:1)\nlast'));
  expect(lines[0]).not.toMatch(/secret/);
});

test("a provider's own failure is not logged, and neither is that of a connection", () => {
  const { lines, read } = setUp();
  read(() => {
    throw new UpstreamError('invalid_response', 'not JSON', { cause: new SyntaxError('Unexpected token') });
  });
  read(() => {
    throw new UpstreamError('unavailable', 'no connection', { cause: new TypeError('fetch failed') });
  });
  expect(lines).toEqual([]);
});
