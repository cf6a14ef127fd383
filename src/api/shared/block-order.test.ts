import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../errors.ts';
import type { ChatChunk, Delta, SlotEvent } from '../../schemas/inner.ts';
import { createBlockOrder, WAITING_BLOCKS_CHARS_MAX } from './block-order.ts';

type Opening = NonNullable<SlotEvent['open']>;

const text = (n: number, content: string, event: Partial<SlotEvent> = {}): ChatChunk => ({
  delta: { content },
  ext: { slot: { n, ...event } },
});
const opens = (kind: Opening['kind']) => ({ open: { kind } });
const closes = { close: {} };
const call = (n: number, index: number, piece: string, event: Partial<SlotEvent> = {}): ChatChunk => ({
  delta: { tool_calls: [{ index, function: { arguments: piece } }] },
  ext: { slot: { n, ...event } },
});
const plain = (delta: Delta): ChatChunk => ({ delta });

/** The emitted chunks: the numbers of their slots, and their contents. */
function ordered(chunks: readonly ChatChunk[], isShown = (_: Opening) => true) {
  const out: string[] = [];
  const order = createBlockOrder(({ delta, ext, finish_reason }) => {
    const text = delta.content ?? delta.tool_calls?.map((one) => one.function.arguments).join('') ?? '';
    const end = ext?.slot?.close === undefined ? '' : '.';
    out.push(finish_reason ? `finish ${finish_reason}` : `${ext?.slot?.n ?? '-'}${text}${end}`);
  }, isShown);
  for (const chunk of chunks) order.take(chunk);
  const before = out.length;
  order.flush();
  return { out, held: out.length - before };
}

describe('blocks of a turn', () => {
  test('that follow each other are emitted unchanged', () => {
    const { out, held } = ordered([
      text(0, 'a', opens('text')),
      text(0, 'b', closes),
      text(1, 'c', opens('text')),
      text(1, 'd', closes),
    ]);
    expect(out).toEqual(['0a', '0b.', '1c', '1d.']);
    expect(held).toBe(0);
  });

  test('that are interleaved are emitted in the order in which they opened', () => {
    const { out } = ordered([
      text(0, 'a', opens('reasoning')),
      text(1, 'x', opens('text')),
      text(2, 'p', opens('text')),
      text(1, 'y', closes),
      text(0, 'b', closes),
      text(2, 'q', closes),
    ]);
    expect(out).toEqual(['0a', '0b.', '1x', '1y.', '2p', '2q.']);
  });

  test('that are never closed are emitted at the end', () => {
    const { out, held } = ordered([text(0, 'a', opens('text')), text(1, 'b', opens('text')), text(1, 'c')]);
    expect(out).toEqual(['0a', '1b', '1c']);
    expect(held).toBe(2);
  });

  test('do not wait for a call with complete arguments', () => {
    const { out, held } = ordered([
      call(0, 0, '{"a":', opens('call')),
      call(1, 1, '{"b"', opens('call')),
      call(0, 0, '1}'),
      call(1, 1, ':2}'),
      call(2, 2, '{}', opens('call')),
    ]);
    expect(out).toEqual(['0{"a":', '01}', '0.', '1{"b"', '1:2}', '1.', '2{}']);
    expect(held).toBe(0);
  });

  test('wait for a call whose arguments only seem complete', () => {
    const { out } = ordered([
      call(0, 0, '{"a":{"b":1}', opens('call')),
      text(1, 'x', { ...opens('text'), ...closes }),
      call(0, 0, '}', closes),
    ]);
    expect(out).toEqual(['0{"a":{"b":1}', '0}.', '1x.']);
  });

  test('wait for a call whose arguments are not an object and may still grow', () => {
    const { out } = ordered([call(0, 0, '1', opens('call')), text(1, 'x', opens('text')), call(0, 0, '2', closes)]);
    expect(out).toEqual(['01', '02.', '1x']);
  });

  test('that are omitted delay no others', () => {
    const { out } = ordered(
      [
        text(0, '', opens('native')),
        text(1, 'a', opens('text')),
        text(0, 'n'),
        text(1, 'b', closes),
        text(0, '', closes),
      ],
      ({ kind }) => kind !== 'native',
    );
    expect(out).toEqual(['1a', '1b.']);
  });

  test('are numbered from zero again after an endpoint that broke off', () => {
    const out: string[] = [];
    const order = createBlockOrder(
      ({ delta }) => out.push(delta.content ?? ''),
      () => true,
    );
    order.take(text(0, 'a', opens('text')));
    order.flush();
    order.take(text(0, 'b', opens('text')));
    expect(out).toEqual(['a', 'b']);
  });

  test('that wait with too much content end the answer', () => {
    const order = createBlockOrder(
      () => undefined,
      () => true,
    );
    order.take(text(0, 'a', opens('text')));
    const piece = 'x'.repeat(WAITING_BLOCKS_CHARS_MAX / 4);
    const fill = () => {
      for (let i = 0; i < 4; i += 1) order.take(text(1, piece, i === 0 ? opens('text') : {}));
    };
    expect(fill).toThrow(GatewayError);
  });

  test('may wait up to the bound again after they were emitted', () => {
    const order = createBlockOrder(
      () => undefined,
      () => true,
    );
    const piece = 'x'.repeat(WAITING_BLOCKS_CHARS_MAX - 1_000);
    for (let n = 0; n < 6; n += 2) {
      order.take(text(n, 'a', opens('text')));
      order.take(text(n + 1, piece, { ...opens('text'), ...closes }));
      order.take(text(n, '', closes));
    }
  });
});

describe('chunks without a block', () => {
  test('are emitted immediately unless they have content', () => {
    const { out } = ordered([
      text(0, 'a', opens('text')),
      plain({ annotations: [] }),
      plain({ content: 'x' }),
      text(0, 'b', closes),
    ]);
    expect(out).toEqual(['0a', '-', '0b.', '-x']);
  });

  test('follow all blocks if they end the answer', () => {
    const { out } = ordered([
      text(0, 'a', opens('text')),
      text(1, 'b', opens('text')),
      { delta: {}, finish_reason: 'stop' },
    ]);
    expect(out).toEqual(['0a', '1b', 'finish stop']);
  });
});
