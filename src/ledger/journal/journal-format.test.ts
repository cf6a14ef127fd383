import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LineBuffer, readSegment } from './journal-format.ts';

const progress = (id: string) => ({ t: 'P' as const, id, usage: { out_text: 7 } });

function segment(...ids: string[]): Buffer {
  const lines = new LineBuffer();
  for (const id of ids) lines.add(JSON.stringify(progress(id)));
  return Buffer.from(lines.take());
}

test('written records are read back, whatever their text', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary', maxLength: 200 }), { maxLength: 30 }), (ids) => {
      expect(readSegment(segment(...ids), 'f').records).toEqual(ids.map(progress));
    }),
  );
});

test('lines longer than the buffer are read whole', () => {
  const long = 'ä'.repeat(200_000);
  expect(readSegment(segment('a', long, 'b'), 'f').records).toEqual([progress('a'), progress(long), progress('b')]);
});

test('a file cut anywhere yields every whole line before the cut', () => {
  const bytes = segment('one', 'two', 'three');
  const ends = [...bytes.entries()].filter(([, byte]) => byte === 10).map(([at]) => at + 1);
  for (let cut = 0; cut <= bytes.length; cut++) {
    const whole = ends.filter((end) => end <= cut).length;
    expect(readSegment(bytes.subarray(0, cut), 'f').records).toHaveLength(whole);
  }
});

test('a tail of zeros, as a power loss leaves it, is dropped', () => {
  const bytes = Buffer.concat([segment('one'), Buffer.alloc(4096)]);
  expect(readSegment(bytes, 'f').records).toEqual([progress('one')]);
});

test('a wrong last byte, as after a power loss, loses the last line alone', () => {
  const bytes = segment('one', 'two');
  for (const byte of [0, 32, 123, 255]) {
    bytes[bytes.length - 1] = byte;
    expect(readSegment(bytes, 'f').records).toEqual([progress('one')]);
  }
});

test('damage before the end is an error that names the file and the offset', () => {
  const bytes = segment('one', 'two', 'three');
  const second = segment('one').length;
  for (let at = second; at < segment('one', 'two').length; at++) {
    const damaged = Buffer.from(bytes);
    damaged[at] = (damaged[at] ?? 0) ^ 0x01;
    expect(() => readSegment(damaged, '/data/slots/0/x.journal')).toThrow(
      new RegExp(`/data/slots/0/x\\.journal is damaged at byte ${second},`),
    );
  }
});
