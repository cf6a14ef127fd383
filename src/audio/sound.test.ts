import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { inTier } from '../../test/tier.ts';
import { opusPacketSeconds } from './opus.ts';
import { formatNamed, type SoundFormat, sniffSound, soundFormats, soundMs } from './sound.ts';

const read = (name: string) => readFileSync(join(import.meta.dirname, '../../test/audio', name));

/** The speech lasts 1.1716 s; padding that an encoder adds and the file does not mark is included in its duration. */
const RECORDED: [name: string, format: SoundFormat, least_ms: number, most_ms: number][] = [
  ['speech.wav', 'wav', 1172, 1172],
  ['speech.mp3', 'mp3', 1172, 1172],
  ['speech-bare.mp3', 'mp3', 1260, 1260],
  ['speech.flac', 'flac', 1172, 1172],
  ['speech-opus.ogg', 'ogg', 1172, 1172],
  ['speech-vorbis.ogg', 'ogg', 1172, 1172],
  ['speech.m4a', 'm4a', 1172, 1236],
  ['speech-fragmented.m4a', 'm4a', 1172, 1236],
  ['speech.webm', 'webm', 1172, 1181],
  ['speech-live.webm', 'webm', 1172, 1181],
  ['speech.aac', 'aac', 1280, 1280],
];

describe('recorded speech', () => {
  test.each(RECORDED)(
    '%s is recognized by its first bytes, with its playing time as duration',
    (name, format, least, most) => {
      const bytes = read(name);
      expect(sniffSound(bytes)).toBe(format);
      const ms = soundMs(bytes, format) ?? 0;
      expect(ms).toBeGreaterThanOrEqual(least);
      expect(ms).toBeLessThanOrEqual(most);
    },
  );

  test('an ID3 tag before the audio is skipped', () => {
    const tag = Buffer.from([0x49, 0x44, 0x33, 4, 0, 0, 0, 0, 1, 0, ...new Array(128).fill(0xff)]);
    for (const name of ['speech-bare.mp3', 'speech.aac', 'speech.flac']) {
      const bytes = read(name);
      const format = sniffSound(bytes);
      const tagged = Buffer.concat([tag, bytes]);
      expect([name, sniffSound(tagged)]).toEqual([name, format]);
      expect(soundMs(tagged, format as SoundFormat)).toBe(soundMs(bytes, format as SoundFormat));
    }
  });

  test('concatenated audio in one file is added up, if the format plays it', () => {
    for (const name of ['speech-bare.mp3', 'speech.aac', 'speech-opus.ogg', 'speech-vorbis.ogg']) {
      const bytes = read(name);
      const format = sniffSound(bytes) as SoundFormat;
      const once = soundMs(bytes, format) ?? 0;
      expect(Math.abs((soundMs(Buffer.concat([bytes, bytes]), format) ?? 0) - 2 * once)).toBeLessThan(40);
    }
  });
});

describe('declared lengths are not used', () => {
  function changed(name: string, change: (bytes: Buffer) => void): Buffer {
    const bytes = Buffer.from(read(name));
    change(bytes);
    return bytes;
  }

  test('the number of frames in an MP3 table', () => {
    const lied = changed('speech.mp3', (bytes) => {
      const at = Math.max(bytes.indexOf('Xing'), bytes.indexOf('Info'));
      expect(at).toBeGreaterThan(0);
      bytes.writeUInt32BE(1, at + 8);
    });
    expect(soundMs(lied, 'mp3')).toBe(1172);
  });

  test('the number of samples at the start of a FLAC stream', () => {
    const lied = changed('speech.flac', (bytes) => bytes.writeUInt32BE(1, 22));
    expect(soundMs(lied, 'flac')).toBe(1172);
  });

  test('bytes that look like a FLAC frame with a wrong checksum', () => {
    const bytes = read('speech.flac');
    // The header of the first frame: its start, four fields, the frame number 0, a checksum.
    const at = bytes.indexOf(Buffer.from([0xff, 0xf8]), 42);
    const header = Buffer.from(bytes.subarray(at, at + 6));
    const once = soundMs(bytes, 'flac') ?? 0;
    expect(soundMs(Buffer.concat([bytes, header, Buffer.alloc(8)]), 'flac')).toBeGreaterThan(once);
    header[5] = (header[5] ?? 0) ^ 1;
    expect(soundMs(Buffer.concat([bytes, header, Buffer.alloc(8)]), 'flac')).toBe(once);
  });

  // All packets, including the part that the last page cuts off.
  test.each([
    ['speech-opus.ogg', 1_174],
    ['speech-vorbis.ogg', 1_180],
  ])('the position on the last page of %s', (name, expected) => {
    const lied = changed(name, (bytes) => bytes.writeBigInt64LE(400n, bytes.lastIndexOf('OggS') + 6));
    expect(soundMs(lied, 'ogg')).toBe(expected);
  });

  test('the length in the head of a WebM file', () => {
    const lied = changed('speech.webm', (bytes) =>
      bytes.writeDoubleBE(1, bytes.indexOf(Buffer.from([0x44, 0x89, 0x88])) + 3),
    );
    expect(soundMs(lied, 'webm')).toBe(soundMs(read('speech.webm'), 'webm'));
  });

  test('the length of frames in the tables of an MP4 file', () => {
    const lied = changed('speech.m4a', (bytes) => {
      const at = bytes.indexOf('stts');
      for (let entry = 0; entry < bytes.readUInt32BE(at + 8); entry += 1) bytes.writeUInt32BE(1, at + 16 + entry * 8);
    });
    expect(soundMs(lied, 'm4a')).toBeGreaterThanOrEqual(1172);
  });

  test('the length of a WAVE file that is open or too long: the file is read to its end', () => {
    const plain = soundMs(read('speech.wav'), 'wav');
    for (const sizeField of [0, 0xffffffff, 0x7fffffff]) {
      const lied = changed('speech.wav', (bytes) => bytes.writeUInt32LE(sizeField, bytes.indexOf('data') + 4));
      expect(soundMs(lied, 'wav')).toBe(plain);
    }
  });
});

test.each([
  ['mpga', 'mp3'],
  ['MP4', 'm4a'],
  ['.opus', 'ogg'],
  ['x-wav', 'wav'],
  ['wma', undefined],
  ['constructor', undefined],
])('the word %s names the format %s', (word, format) => {
  expect(formatNamed(word)).toBe(format);
});

// RFC 6716, tables 2 and 5: configuration in the upper five bits, number of frames in the lower two or the second byte.
test.each([
  ['SILK, 20 ms', 1 << 3, 0, 0.02],
  ['two frames', (1 << 3) | 1, 0, 0.04],
  ['two frames of different lengths', (1 << 3) | 2, 0, 0.04],
  ['a stated number of frames: three', (1 << 3) | 3, 0x83, 0.06],
  ['hybrid, 10 ms', 12 << 3, 0, 0.01],
  ['hybrid, 20 ms', 15 << 3, 0, 0.02],
  ['CELT, 2.5 ms', 28 << 3, 0, 0.0025],
  ['CELT, 20 ms', 31 << 3, 0, 0.02],
  ['at most 120 ms', (3 << 3) | 3, 63, 0.12],
])('an Opus packet: %s', (_what, first, second, seconds) => {
  expect(opusPacketSeconds(first, second)).toBe(seconds);
});

describe('arbitrary input', () => {
  const files = RECORDED.map(([name, format]) => ({ bytes: read(name), format }));
  const measured = (bytes: Buffer) => {
    for (const format of soundFormats) {
      const ms = soundMs(bytes, format);
      expect(ms === undefined || (Number.isFinite(ms) && ms > 0)).toBe(true);
    }
    sniffSound(bytes);
  };

  test('random bytes are measured or not, and nothing is thrown', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 4_096 }), (bytes) => measured(Buffer.from(bytes))),
      { seed: 7 },
    );
  });

  test('cut, changed or extended files are measured or not, and nothing is thrown', () => {
    const place = fc.nat(20_000);
    const change = fc.tuple(
      fc.constantFrom(...files),
      place,
      fc.constantFrom('cut', 'set', 'put'),
      fc.uint8Array({ maxLength: 24 }),
    );
    fc.assert(
      fc.property(change, ([{ bytes }, at, kind, put]) => {
        const from = at % bytes.length;
        const rest = kind === 'cut' ? [] : [put, bytes.subarray(kind === 'put' ? from : from + put.length)];
        measured(Buffer.concat([bytes.subarray(0, from), ...rest]));
      }),
      { seed: 11, numRuns: inTier(150, 1_500) },
    );
  });

  test('a file without its end is not measured as longer', () => {
    for (const { bytes, format } of files) {
      const whole = soundMs(bytes, format) ?? 0;
      const half = soundMs(bytes.subarray(0, bytes.length / 2), format) ?? 0;
      // A moov box at the end describes missing samples, or is missing itself.
      expect(half).toBeLessThanOrEqual(whole);
    }
  });

  test('a file with more boxes, elements or streams than the bound has no duration', () => {
    const filled = (unit: Buffer) => Buffer.alloc(8 * 1024 * 1024, unit);
    const page = Buffer.alloc(27);
    page.write('OggS');
    const pages = Buffer.concat(
      Array.from({ length: 2_000 }, (_, serial) => {
        page.writeUInt32LE(serial, 14);
        return Buffer.from(page);
      }),
    );
    expect(soundMs(Buffer.concat([read('speech.wav'), filled(Buffer.from('junk\0\0\0\0'))]), 'wav')).toBeUndefined();
    expect(soundMs(Buffer.concat([read('speech.m4a'), filled(Buffer.from('\0\0\0\x08free'))]), 'm4a')).toBeUndefined();
    const blocks = filled(Buffer.from([0xec, 0x80]));
    expect(soundMs(Buffer.concat([read('speech.webm'), blocks]), 'webm')).toBeUndefined();
    expect(soundMs(Buffer.concat([read('speech-opus.ogg'), pages]), 'ogg')).toBeUndefined();
  });

  test('bytes that all look like the start of a frame have no duration and are scanned once', () => {
    // A header of MPEG-1 layer III whose length leads to none.
    const bytes = Buffer.alloc(8 * 1024 * 1024, Buffer.from([0xff, 0xfb, 0x92, 0x00, 0x00]));
    expect(soundMs(bytes, 'mp3')).toBeUndefined();
  });

  test('an Ogg header without an end is not joined again with every page', () => {
    const page = Buffer.alloc(27 + 1 + 255);
    page.write('OggS', 0, 'latin1');
    page[26] = 1;
    page[27] = 255;
    const pages = Buffer.alloc(page.length * 90_000, page);
    expect(soundMs(pages, 'ogg')).toBeUndefined();
    const speech = read('speech-opus.ogg');
    expect(soundMs(Buffer.concat([pages, speech]), 'ogg')).toBe(soundMs(speech, 'ogg'));
  });
});
