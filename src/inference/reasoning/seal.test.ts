import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { ReasoningDetail } from '../../schemas/inner.ts';
import { createSealer, SEAL_CHARS_MAX, SEAL_UNPACKED_BYTES_MAX } from './seal.ts';
import type { SealedTurn } from './turn-state.ts';

const sealer = createSealer('secret');
const OWNER = { organization_id: 'org', generation_id: 'gen-1' };
const turn: SealedTurn = { w: 'anthropic-messages', i: 'anthropic', t: [], c: [3], d: [0] };

function dataOf(seal: { detail: ReasoningDetail } | undefined): string {
  return seal?.detail.type === 'reasoning.encrypted' ? seal.detail.data : '';
}

describe('a seal', () => {
  const data = dataOf(sealer.seal(turn, OWNER));

  test('opens only for its organization and secret, and only unchanged', () => {
    expect(sealer.unseal(data, 'org')).toEqual(turn);
    expect(sealer.unseal(data, 'other')).toBeUndefined();
    expect(createSealer('another').unseal(data, 'org')).toBeUndefined();
    for (let at = 0; at < data.length - 1; at += 1) {
      const changed = `${data.slice(0, at)}${data[at] === 'A' ? 'B' : 'A'}${data.slice(at + 1)}`;
      expect(sealer.unseal(changed, 'org')).toBeUndefined();
    }
  });

  test.each(['', 'gw1.', 'gw1..', 'gw1.a', `gw2.${data.slice(4)}`, `${data}.a`, `${data}${'a'.repeat(50)}`])(
    'is undefined for any other text: %s',
    (other) => {
      expect(sealer.unseal(other, 'org')).toBeUndefined();
    },
  );

  test('of dots alone is not split into pieces', () => {
    expect(sealer.unseal(`gw1.${'.'.repeat(60_000_000)}`, 'org')).toBeUndefined();
  });

  test('has at most the bytes that may be unpacked, whatever its compression', () => {
    const block = { type: 'x', text: 'a'.repeat(SEAL_UNPACKED_BYTES_MAX) };
    const bomb: SealedTurn = {
      ...turn,
      n: [{ wire: 'anthropic-messages', block }] as unknown as SealedTurn['n'] & object,
    };
    const seal = sealer.seal(bomb, OWNER);
    expect(seal?.is_whole).toBe(false);
    expect(sealer.unseal(dataOf(seal), 'org')).toEqual({ ...turn, g: 'gen-1' });
    const random = randomBytes(SEAL_CHARS_MAX).toString('hex');
    const noise: SealedTurn = { ...turn, t: [random] };
    expect(sealer.seal(noise, OWNER)).toBeUndefined();
  });
});
