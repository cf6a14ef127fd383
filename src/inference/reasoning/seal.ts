import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { limits } from '../../limits.ts';
import type { ReasoningDetail } from '../../schemas/inner.ts';
import { createSignedTexts, isMarked } from './signed-text.ts';
import { type SealedTurn, shorterTurns } from './turn-state.ts';

/** Marks a turn so that it can be rebuilt from what a client sends back, and knows its own marks again. */
export interface Sealer {
  /** The last detail of an answer, and whether all of the turn is in it; undefined where even the least is larger than a seal may be. */
  seal(
    turn: SealedTurn,
    owner: { organization_id: string; generation_id: string },
  ): { detail: ReasoningDetail; is_whole: boolean } | undefined;
  /**
   * Undefined where it was not made here for this organization, or changed since, or has no room; `room` is what may be
   * unpacked yet, and becomes less.
   */
  unseal(data: string, organization_id: string, room?: { bytes: number }): SealedTurn | undefined;
}

const ID = 'seal_';

type Sealed = ReasoningDetail & { type: 'reasoning.encrypted' };

/** Whether a detail is a seal, be it one of ours or not: none of them is for a provider. */
export function isSeal(detail: ReasoningDetail): detail is Sealed {
  return isMarkedDetail(detail) && Boolean(detail.id?.startsWith(ID));
}

/** The same of what a client sent back: some drop ids and forms, and what has neither, but a mark, is nothing else. */
export function isReturnedSeal(detail: ReasoningDetail): detail is Sealed {
  if (!isMarkedDetail(detail)) return false;
  return detail.id == null ? (detail.format ?? 'unknown') === 'unknown' : detail.id.startsWith(ID);
}

function isMarkedDetail(detail: ReasoningDetail): detail is Sealed {
  return detail.type === 'reasoning.encrypted' && isMarked(detail.data);
}

/** Makes the sealer of a gateway's secret. */
export function createSealer(secret: string): Sealer {
  const texts = createSignedTexts(secret, 'reasoning seal', limits.seal_chars_max);
  /** Undefined for a turn that is larger unpacked than a request full of such seals could be read. */
  const pack = (turn: SealedTurn): string | undefined => {
    const text = Buffer.from(JSON.stringify(turn));
    return text.length > limits.seal_unpacked_bytes_max ? undefined : deflateRawSync(text).toString('base64url');
  };
  const fits = (packed: string | undefined) => packed !== undefined && packed.length <= limits.seal_chars_max;
  return {
    seal(turn, { organization_id, generation_id }) {
      const whole = pack(turn);
      const packed = fits(whole) ? whole : shorterTurns(turn, generation_id).map(pack).find(fits);
      if (packed === undefined) return undefined;
      const data = texts.sign(packed, organization_id);
      const id = `${ID}${generation_id}`;
      return { detail: { type: 'reasoning.encrypted', data, id, format: 'unknown' }, is_whole: packed === whole };
    },
    unseal(data, organization_id, room) {
      if (room !== undefined && room.bytes <= 0) return undefined;
      const packed = texts.verify(data, organization_id);
      if (packed === undefined) return undefined;
      const text = inflateRawSync(Buffer.from(packed, 'base64url'), {
        maxOutputLength: limits.seal_unpacked_bytes_max,
      });
      if (room !== undefined) room.bytes -= text.length;
      return JSON.parse(text.toString()) as SealedTurn;
    },
  };
}
