/**
 * Audio is measured in steps of a bounded number of pieces. A file of very many of its smallest pieces is abandoned,
 * whatever follows them.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type SoundFormat, sniffSound, soundMs, soundSteps } from '../../src/audio/sound.ts';
import { STEP_PIECES } from '../../src/audio/steps.ts';

const MIB = 1024 * 1024;
const latin1 = (text: string) => Buffer.from(text, 'latin1');
const speech = (name: string) => readFileSync(join(import.meta.dirname, '../audio', name));
const pageOfPackets = Buffer.concat([latin1(`OggS${'\0'.repeat(22)}\xff`), Buffer.alloc(255)]);

/** The beginning of a file, the piece that fills it, the number of pieces, and the audio at its end. */
const FLOODS: [what: string, format: SoundFormat, start: string, piece: string | Buffer, bytes: number, end: string][] =
  [
    ['empty tags', 'mp3', '', 'ID3\x04\0\0\0\0\0\0', 5 * MIB, 'speech-bare.mp3'],
    ['bytes between frames of MP3', 'mp3', '\xff\xfb\x90\0', '\0', 5 * MIB, 'speech-bare.mp3'],
    ['bytes between frames of AAC', 'aac', '\xff\xf1', '\0', 5 * MIB, 'speech.aac'],
    ['bytes between pages of Ogg', 'ogg', `OggS${'\0'.repeat(23)}`, 'OggO', 5 * MIB, 'speech-opus.ogg'],
    ['packets of Ogg', 'ogg', '', pageOfPackets, 4 * MIB, 'speech-opus.ogg'],
    [
      'runs of MP4',
      'm4a',
      '\0\0\0\x08ftyp',
      `\0\0\0\x18trun\0\0\x01\0\0\0\0\x02${'\0'.repeat(8)}`,
      6 * MIB,
      'speech.m4a',
    ],
    [
      'entries of a table of MP4',
      'm4a',
      `\0\0\0\x08ftyp\0\x90\0\x10stts\0\0\0\0\0\x12\0\0`,
      '\0',
      9 * MIB + 16,
      'speech.m4a',
    ],
  ];

test.each(FLOODS)('%s', (_what, format, start, piece, bytes, end) => {
  const first = latin1(start);
  const filling = typeof piece === 'string' ? latin1(piece) : piece;
  const count = Math.floor((bytes - first.length) / filling.length);
  const flood = Buffer.concat([first, Buffer.alloc(count * filling.length, filling)]);
  const sound = speech(end);
  const file = Buffer.concat([flood, sound]);
  expect(sniffSound(file)).toBe(format);
  expect(soundMs(file, format)).toBeUndefined();
  // A few of the same pieces are skipped.
  const few = Buffer.concat([first, Buffer.alloc(filling.length * 10, filling), sound]);
  if (piece !== '\0' || format !== 'm4a') expect(soundMs(few, format)).toBeGreaterThan(1_000);
});

test('blocks before FLAC, bytes that imitate its frames, and bytes that only start like one are measured correctly', () => {
  const sound = speech('speech.flac');
  const blocks = Buffer.concat([latin1('fLaC'), Buffer.alloc(2_000 * 4, '\x01\0\0\0', 'latin1'), sound.subarray(4)]);
  expect(soundMs(blocks, 'flac')).toBeUndefined();
  const frames = sound.subarray(sound.indexOf(Buffer.from([0xff, 0xf8]), 42));
  const first = frames.subarray(0, 4);
  for (const [piece, count] of [
    [Buffer.concat([first, Buffer.from([0, 1])]), 300_000],
    [Buffer.from([0xff]), 2_000_000],
  ] as const) {
    const filled = (times: number) =>
      soundMs(Buffer.concat([sound, Buffer.alloc(times * piece.length, piece), frames]), 'flac');
    expect(filled(count)).toBeUndefined();
    expect(filled(10)).toBeGreaterThan(100);
  }
});

const PIECES = 4 * STEP_PIECES;
const webmHead = '\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff';

test.each<[SoundFormat, start: string, piece: string]>([
  ['mp3', '', `\xff\xf3\x14\xc4${'\0'.repeat(20)}`],
  ['aac', '', '\xff\xf1\x50\x80\0\xff\xfc'],
  ['ogg', '', `OggS${'\0'.repeat(23)}`],
  ['webm', webmHead, '\xa3\x84\x81\0\0\0'],
  ['flac', `fLaC\x80\0\0\x22${'\0'.repeat(10)}\x0a\xc4\x42${'\0'.repeat(21)}\xff\xf8\x19\x18\0\0`, '\xff'],
])('the smallest pieces of %s: other requests are served between steps', (format, start, piece) => {
  const file = Buffer.concat([latin1(start), Buffer.alloc(PIECES * piece.length, latin1(piece))]);
  expect(sniffSound(file)).toBe(format);
  let steps = 0;
  for (const _ of soundSteps(file, format)) steps += 1;
  expect(steps).toBeGreaterThanOrEqual(3);
  expect(steps).toBeLessThanOrEqual(5);
});

test('an ordinary file is measured in one step', () => {
  for (const name of [
    'speech.mp3',
    'speech.aac',
    'speech-opus.ogg',
    'speech.webm',
    'speech.flac',
    'speech.m4a',
    'speech.wav',
  ]) {
    const bytes = speech(name);
    const format = sniffSound(bytes)!;
    const { done, value } = soundSteps(bytes, format).next();
    expect([name, done, value]).toEqual([name, true, soundMs(bytes, format)]);
  }
});
