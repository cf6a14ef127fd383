import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { inTier } from '../../../test/tier.ts';
import { type Frame, UpstreamError } from '../dialect.ts';
import { createFramer } from './frames.ts';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

function frame(bytes: Uint8Array, cuts: number[] = []): Frame[] {
  const framer = createFramer('sse');
  const frames: Frame[] = [];
  const edges = [0, ...[...cuts].sort((a, b) => a - b), bytes.length];
  for (let i = 1; i < edges.length; i += 1) frames.push(...framer.push(bytes.slice(edges[i - 1], edges[i])));
  frames.push(...framer.end());
  return frames;
}

function splitEverywhere(bytes: Uint8Array): Frame[][] {
  const all: Frame[][] = [];
  for (let cut = 0; cut <= bytes.length; cut += 1) all.push(frame(bytes, [cut]));
  all.push(
    frame(
      bytes,
      Array.from({ length: bytes.length }, (_, i) => i),
    ),
  );
  return all;
}

describe('an event stream', () => {
  test.each<[string, string, Frame[]]>([
    ['ends lines with LF', 'data: a\n\ndata: b\n\n', [f('a'), f('b')]],
    ['ends lines with CRLF', 'data: a\r\n\r\ndata: b\r\n\r\n', [f('a'), f('b')]],
    ['ends lines with CR', 'data: a\r\rdata: b\r\r', [f('a'), f('b')]],
    ['mixes line ends', 'data: a\r\n\ndata: b\r\r\ndata: c\n\r\n', [f('a'), f('b'), f('c')]],
    ['may begin with a byte order mark', '\uFEFFdata: a\n\n', [f('a')]],
    ['keeps a byte order mark inside', 'data: \uFEFFa\n\n', [f('\uFEFFa')]],
    ['ignores comments', ': hi\ndata: a\n: there\n\n:\n\n', [f('a')]],
    ['joins data lines with LF', 'data: a\ndata: b\ndata:\ndata\n\n', [f('a\nb\n\n')]],
    ['needs no space after the colon and takes only one', 'data:a\n\ndata:  b\n\n', [f('a'), f(' b')]],
    ['names events', 'event: error\ndata: {}\n\ndata: a\n\n', [f('{}', 'error'), f('a')]],
    ['has no event without data', 'event: ping\n\ndata: a\n\n', [f('a')]],
    ['ignores other fields', 'id: 1\nretry: 5\ndatum: x\ndata: a\n\n', [f('a')]],
    ['has empty data', 'data\n\ndata:\n\n', [f(''), f('')]],
    ['yields a last event without a blank line', 'data: a\n\ndata: b\n', [f('a'), f('b')]],
    ['yields a last event without any line end', 'data: a\n\ndata: b', [f('a'), f('b')]],
    ['may contain any character', 'data: Grüße 👋🏽 漢字\n\n', [f('Grüße 👋🏽 漢字')]],
    ['is empty', '', []],
  ])('%s, however it is split', (_rule, text, expected) => {
    for (const frames of splitEverywhere(bytesOf(text))) expect(frames).toEqual(expected);
  });

  test('replaces broken UTF-8 the same way however it is split', () => {
    const bytes = Uint8Array.from([...bytesOf('data: '), 0xe2, 0x82, 0x41, 0xf0, 0x9f, 0x98, 0xff, 0xc3, 10, 10, 0xe2]);
    const [expected, ...others] = splitEverywhere(bytes);
    expect(expected![0]!.data).toBe('\uFFFDA\uFFFD\uFFFD\uFFFD');
    for (const frames of others) expect(frames).toEqual(expected);
  });

  test('that is not one is a single frame at the end', () => {
    const page = '{\n  "error": {"message": "no"}\n}';
    for (const frames of splitEverywhere(bytesOf(page))) expect(frames).toEqual([f(`${page}\n`)]);
  });

  test.each<[string, string, Frame[]]>([
    [
      'is one more frame',
      'data: a\n\n{\n  "error": {"code": 503}\n}\n',
      [f('a'), f('{\n  "error": {"code": 503}\n}\n')],
    ],
    ['is a frame also without a line end', 'data: a\r\n\r\n[{"error": 1}]', [f('a'), f('[{"error": 1}]\n')]],
    ['is ignored before further events', 'data: a\n\n{"error": 1}\n\ndata: b\n\n', [f('a'), f('b')]],
    ['is ignored if it is incomplete or not JSON', 'data: a\n\n{"error": \nmore\n', [f('a')]],
    ['is ignored if it is an unknown field', 'data: a\n\nid: 1\nretry: 2\nother: {}\n', [f('a')]],
  ])('JSON after the last event %s', (_, text, expected) => {
    for (const frames of splitEverywhere(bytesOf(text))) expect(frames).toEqual(expected);
  });

  test('does not read from a buffer that its owner reuses', () => {
    const framer = createFramer('sse');
    const shared = Buffer.from('data: \xc3', 'latin1');
    expect(framer.push(shared)).toEqual([]);
    shared.fill(0);
    expect(framer.push(Buffer.from('\xa9\n\n', 'latin1'))).toEqual([f('é')]);
  });

  test('gives the same frames for any split of any bytes', () => {
    const piece = fc.constantFrom(
      'data:',
      'data: x',
      'event: e',
      ':',
      '\n',
      '\r',
      '\r\n',
      '\n\n',
      'é',
      '👋',
      '\uFEFF',
      '{}',
    );
    const content = fc.oneof(
      fc.array(piece, { maxLength: 40 }).map((pieces) => bytesOf(pieces.join(''))),
      fc.uint8Array({ maxLength: 60 }),
    );
    fc.assert(
      fc.property(content, fc.array(fc.nat(), { maxLength: 8 }), (bytes, seeds) => {
        const cuts = seeds.map((seed) => seed % (bytes.length + 1));
        expect(frame(bytes, cuts)).toEqual(frame(bytes));
      }),
      { numRuns: inTier(200, 2_000) },
    );
  });
});

describe('a frame over the bound', () => {
  test('fails after the frames before it were returned', () => {
    const framer = createFramer('sse', 16);
    expect(framer.push(bytesOf(`data: a\n\ndata: ${'x'.repeat(20)}`))).toEqual([f('a')]);
    expect(() => framer.push(bytesOf('\n\n'))).toThrow(UpstreamError);
    expect(() => framer.end()).toThrow(UpstreamError);
  });

  test('fails also if its lines are short or its bytes arrive one by one', () => {
    const framer = createFramer('sse', 16);
    const feed = () => {
      for (const byte of bytesOf('data: aaaa\ndata: bbbb\ndata: cccc\n\n')) framer.push(Uint8Array.of(byte));
    };
    expect(feed).toThrow(UpstreamError);
  });
});

test('fails also if its line never ends', () => {
  const framer = createFramer('sse', 16);
  framer.push(bytesOf('data: xxxxx'));
  expect(() => framer.push(bytesOf('xxxxxx'))).toThrow(UpstreamError);
});

function f(data: string, event?: string): Frame {
  return { event, data };
}
