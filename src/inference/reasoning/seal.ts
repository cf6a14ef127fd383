import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { ReasoningDetail } from '../../schemas/inner.ts';
import { isLongJson, JSON_CHARS_FACTOR } from '../../schemas/json-pieces.ts';
import { createSignedTexts, isMarked } from './signed-text.ts';
import { type SealedTurn, shorterTurns } from './turn-state.ts';

/** Characters of a packed seal. A larger turn is sealed in a shortened form. */
export const SEAL_CHARS_MAX = 16 * 1024;
/** Bytes of an unpacked seal: a request may hold thousands of seals. */
export const SEAL_UNPACKED_BYTES_MAX = 128 * 1024;

/** Makes seals: details from which a turn can be rebuilt when a client sends it back. */
export interface Sealer {
  /** The seal as the last detail of an answer, and whether it has the whole turn; undefined if even a shortened turn is too large. */
  seal(
    turn: SealedTurn,
    owner: { organization_id: string; generation_id: string },
  ): { detail: ReasoningDetail; is_whole: boolean } | undefined;
  /**
   * The turn of a seal; undefined if the seal was not made here for this organization, was changed, or `room` is used up. Subtracts the
   * unpacked bytes from `room`.
   */
  unseal(data: string, organizationId: string, room?: { bytes: number }): SealedTurn | undefined;
}

const ID = 'seal_';

type Sealed = ReasoningDetail & { type: 'reasoning.encrypted' };

/** Whether a detail is a seal, valid or not: no seal is sent to a provider. */
export function isSeal(detail: ReasoningDetail): detail is Sealed {
  return isMarkedDetail(detail) && Boolean(detail.id?.startsWith(ID));
}

/** The same for a detail that a client sent back: some clients drop ids and formats, so a marked detail without both is a seal. */
export function isReturnedSeal(detail: ReasoningDetail): detail is Sealed {
  if (!isMarkedDetail(detail)) return false;
  return detail.id == null ? (detail.format ?? 'unknown') === 'unknown' : detail.id.startsWith(ID);
}

function isMarkedDetail(detail: ReasoningDetail): detail is Sealed {
  return detail.type === 'reasoning.encrypted' && isMarked(detail.data);
}

export function createSealer(secret: string): Sealer {
  const texts = createSignedTexts(secret, 'reasoning seal', SEAL_CHARS_MAX);
  /** Undefined for a turn that is too large unpacked: a request may have many seals. */
  const pack = (turn: SealedTurn): string | undefined => {
    if (isLongJson(turn, SEAL_UNPACKED_BYTES_MAX * JSON_CHARS_FACTOR)) return undefined;
    const text = Buffer.from(JSON.stringify(turn));
    return text.length > SEAL_UNPACKED_BYTES_MAX ? undefined : deflateRawSync(text).toString('base64url');
  };
  const fits = (packed: string | undefined) => packed !== undefined && packed.length <= SEAL_CHARS_MAX;
  return {
    seal(turn, { organization_id, generation_id }) {
      const whole = pack(turn);
      const packed = fits(whole) ? whole : shorterTurns(turn, generation_id).map(pack).find(fits);
      if (packed === undefined) return undefined;
      const data = texts.sign(packed, organization_id);
      const id = `${ID}${generation_id}`;
      return { detail: { type: 'reasoning.encrypted', data, id, format: 'unknown' }, is_whole: packed === whole };
    },
    unseal(data, organizationId, room) {
      if (room !== undefined && room.bytes <= 0) return undefined;
      const packed = texts.verify(data, organizationId);
      if (packed === undefined) return undefined;
      const text = inflateRawSync(Buffer.from(packed, 'base64url'), {
        maxOutputLength: SEAL_UNPACKED_BYTES_MAX,
      });
      if (room !== undefined) room.bytes -= text.length;
      return JSON.parse(text.toString()) as SealedTurn;
    },
  };
}
