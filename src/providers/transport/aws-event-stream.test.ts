import { EventStreamCodec, type MessageHeaders } from '@smithy/core/event-streams';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { inTier } from '../../../test/tier.ts';
import { type Frame, UpstreamError } from '../dialect.ts';
import { createFramer } from './frames.ts';

/** AWS's own codec: its output is input for the framer. */
const codec = new EventStreamCodec(
  (input) => (typeof input === 'string' ? input : Buffer.from(input).toString('utf8')),
  (input) => Buffer.from(input, 'utf8'),
);

function message(headers: MessageHeaders, payload: string): Uint8Array {
  return codec.encode({ headers, body: Buffer.from(payload) });
}

const text = (value: string) => ({ type: 'string' as const, value });
const event = (type: string, payload: string) =>
  message(
    {
      ':event-type': text(type),
      ':content-type': text('application/json'),
      ':message-type': text('event'),
    },
    payload,
  );

function frame(bytes: Uint8Array, cuts: number[] = []): Frame[] {
  const framer = createFramer('aws-event-stream');
  const frames: Frame[] = [];
  const edges = [0, ...[...cuts].sort((a, b) => a - b), bytes.length];
  for (let i = 1; i < edges.length; i += 1) {
    const shared = Buffer.from(bytes.slice(edges[i - 1], edges[i]));
    frames.push(...framer.push(shared));
    shared.fill(0xff);
  }
  frames.push(...framer.end());
  return frames;
}

const every = (bytes: Uint8Array) => Array.from({ length: bytes.length - 1 }, (_, i) => i + 1);

describe('a binary event stream', () => {
  const bytes = Buffer.concat([
    event('messageStart', '{"role":"assistant"}'),
    event('contentBlockDelta', '{"delta":{"text":"Grüße 👋🏽 漢字"}}'),
    message({}, ''),
    message(
      {
        yes: { type: 'boolean', value: true },
        no: { type: 'boolean', value: false },
        byte: { type: 'byte', value: 1 },
        short: { type: 'short', value: 2 },
        integer: { type: 'integer', value: 3 },
        binary: { type: 'binary', value: Uint8Array.of(1, 2, 3) },
        timestamp: { type: 'timestamp', value: new Date(5) },
        uuid: { type: 'uuid', value: '12345678-1234-1234-1234-123456789012' },
        ':event-type': text('metadata'),
        ':message-type': text('event'),
      },
      '{}',
    ),
    message({ ':exception-type': text('throttlingException'), ':message-type': text('exception') }, '{"message":"no"}'),
    message(
      { ':error-code': text('BadThing'), ':error-message': text('It broke.'), ':message-type': text('error') },
      '',
    ),
  ]);
  const expected: Frame[] = [
    { event: 'messageStart', data: '{"role":"assistant"}' },
    { event: 'contentBlockDelta', data: '{"delta":{"text":"Grüße 👋🏽 漢字"}}' },
    { event: undefined, data: '' },
    { event: 'metadata', data: '{}' },
    { event: 'throttlingException', data: '{"message":"no"}', failure: true },
    { event: 'BadThing', data: '{"message":"It broke."}', failure: true },
  ];

  test('is read as events, exceptions and errors, wherever it is split, from reused buffers', () => {
    expect(frame(bytes)).toEqual(expected);
    for (const cut of every(bytes)) expect(frame(bytes, [cut]), `cut at ${cut}`).toEqual(expected);
    expect(frame(bytes, every(bytes))).toEqual(expected);
  });

  test('that ends inside a message returns the complete ones', () => {
    for (const cut of every(bytes)) {
      const whole = frame(bytes.subarray(0, cut));
      expect(whole).toEqual(expected.slice(0, whole.length));
      expect(whole.length).toBeLessThan(expected.length);
    }
  });

  test('with any changed bit is refused', () => {
    const one = Buffer.from(event('contentBlockDelta', '{"delta":{"text":"a"}}'));
    for (let at = 0; at < one.length; at += 1) {
      const changed = Buffer.from(one);
      changed[at]! ^= 1 << (at % 8);
      expect(() => frame(changed), `byte ${at}`).toThrow(UpstreamError);
    }
  });

  test('returns the frames before an error, and then keeps failing', () => {
    const framer = createFramer('aws-event-stream');
    const fault = Buffer.from(event('b', '{}'));
    fault[fault.length - 1]! ^= 1;
    expect(framer.push(Buffer.concat([event('a', '{}'), fault]))).toEqual([{ event: 'a', data: '{}' }]);
    expect(() => framer.push(event('c', '{}'))).toThrow('the checksum of an event is wrong');
    expect(() => framer.end()).toThrow('the checksum of an event is wrong');
  });

  test('of other bytes is refused', () => {
    expect(() => frame(Buffer.from('<html><body>Bad gateway</body></html>'))).toThrow(
      'the checksum of a length is wrong',
    );
  });

  test('with a header longer than all headers is refused', () => {
    const bad = Buffer.from(message({ a: text('bcd') }, ''));
    // The length of the value is too large; the checksum matches.
    bad.writeUInt16BE(40, 12 + 1 + 1 + 1);
    bad.writeUInt32BE(checksum(bad.subarray(0, bad.length - 4)), bad.length - 4);
    expect(() => frame(bad)).toThrow('a header is longer than all headers');
  });
});

test('a message over the bound is refused before its bytes are buffered', () => {
  const large = event('contentBlockDelta', 'x'.repeat(100));
  expect(() => createFramer('aws-event-stream', 64).push(large.slice(0, 12))).toThrow('larger than this service reads');
});

test('random bytes and faults in valid ones give frames or an UpstreamError, the same for any split', () => {
  const good = fc
    .array(fc.tuple(fc.constantFrom('messageStart', 'contentBlockDelta', 'metadata'), fc.string({ maxLength: 20 })), {
      maxLength: 5,
    })
    .map((events) => Buffer.concat(events.map(([type, payload]) => event(type, payload))));
  const bent = fc.tuple(good, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 })).map(([bytes, changes]) => {
    const copy = Buffer.from(bytes);
    for (const [at, value] of changes) if (copy.length > 0) copy[at % copy.length] = value;
    return copy;
  });
  const outcome = (bytes: Uint8Array, cuts: number[]): unknown => {
    const framer = createFramer('aws-event-stream');
    const frames: Frame[] = [];
    const edges = [0, ...[...cuts].sort((a, b) => a - b), bytes.length];
    try {
      for (let i = 1; i < edges.length; i += 1) frames.push(...framer.push(bytes.slice(edges[i - 1], edges[i])));
      frames.push(...framer.end());
    } catch (error) {
      expect(error).toBeInstanceOf(UpstreamError);
      return [frames, (error as UpstreamError).message];
    }
    return [frames];
  };
  fc.assert(
    fc.property(
      fc.oneof(fc.uint8Array({ maxLength: 80 }), bent),
      fc.array(fc.nat(), { maxLength: 6 }),
      (bytes, seeds) => {
        const cuts = seeds.map((seed) => seed % (bytes.length + 1));
        expect(outcome(bytes, cuts)).toEqual(outcome(bytes, []));
      },
    ),
    { numRuns: inTier(100, 1_000), seed: 7 },
  );
});

function checksum(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}
