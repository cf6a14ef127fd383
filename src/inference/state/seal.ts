import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { limits } from '../../limits.ts';
import type { ReasoningDetail } from '../../schemas/inner.ts';
import { type SealedTurn, shorterTurns } from './turn-state.ts';

/** Marks a turn so that it can be rebuilt from what a client sends back, and knows its own marks again. */
export interface Sealer {
  /** The last detail of an answer, and whether all of the turn is in it; undefined where even the least is larger than a seal may be. */
  seal(
    turn: SealedTurn,
    owner: { organization_id: string; generation_id: string },
  ): { detail: ReasoningDetail; is_whole: boolean } | undefined;
  /** Undefined where it was not made here for this organization, or changed since. */
  unseal(data: string, organization_id: string): SealedTurn | undefined;
}

const PREFIX = 'gw1.';
const ID = 'seal_';
/** A dot and 32 bytes in base64. */
const MAC_CHARS_MAX = 1 + 44;

/** Whether a detail of a client's is a seal, be it one of ours or not: none of them is for a provider. */
export function isSeal(detail: ReasoningDetail): detail is ReasoningDetail & { type: 'reasoning.encrypted' } {
  return detail.type === 'reasoning.encrypted' && detail.data.startsWith(PREFIX) && Boolean(detail.id?.startsWith(ID));
}

/** Makes the sealer of a gateway's secret: HMAC-SHA-256 over what is sealed and whose it is, under a key derived by HKDF (RFC 5869). */
export function createSealer(secret: string): Sealer {
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'model-gateway reasoning seal', 32));
  const mac = (packed: string, organization_id: string) =>
    createHmac('sha256', key).update(`${organization_id}\n${packed}`).digest();
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
      const data = `${PREFIX}${packed}.${mac(packed, organization_id).toString('base64url')}`;
      const id = `${ID}${generation_id}`;
      return { detail: { type: 'reasoning.encrypted', data, id, format: 'unknown' }, is_whole: packed === whole };
    },
    unseal(data, organization_id) {
      const end = data.indexOf('.', PREFIX.length);
      const packed = data.slice(PREFIX.length, end);
      if (!data.startsWith(PREFIX) || end === -1 || !fits(packed) || data.length - end > MAC_CHARS_MAX)
        return undefined;
      const given = Buffer.from(data.slice(end + 1), 'base64url');
      const wanted = mac(packed, organization_id);
      if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) return undefined;
      const text = inflateRawSync(Buffer.from(packed, 'base64url'), {
        maxOutputLength: limits.seal_unpacked_bytes_max,
      });
      return JSON.parse(text.toString()) as SealedTurn;
    },
  };
}
