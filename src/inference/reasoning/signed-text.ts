import { createHmac, createSecretKey, hkdfSync, timingSafeEqual } from 'node:crypto';

/** Signs texts that clients send back, each for one organization. */
export interface SignedTexts {
  /** `packed` has only base64url characters. */
  sign(packed: string, organizationId: string): string;
  /** The signed text; undefined if it was not signed here for this organization, or was changed. */
  verify(text: string, organizationId: string): string | undefined;
}

const PREFIX = 'gw1.';
/** A dot and 32 bytes in base64. */
const MAC_CHARS_MAX = 1 + 44;

/** Whether a text has the mark of signed texts, valid or not: it has no meaning for a provider. */
export function isMarked(text: string): boolean {
  return text.startsWith(PREFIX);
}

/** The signer of one kind of texts: HMAC-SHA-256 over the text and its organization, with a key derived by HKDF (RFC 5869). */
export function createSignedTexts(secret: string, purpose: string, packedCharsMax: number): SignedTexts {
  // A key object: passing the bytes each time takes ten times as long.
  const key = createSecretKey(new Uint8Array(hkdfSync('sha256', secret, '', `model-gateway ${purpose}`, 32)));
  const mac = (packed: string, organizationId: string) =>
    createHmac('sha256', key).update(`${organizationId}\n${packed}`).digest();
  return {
    sign: (packed, organizationId) => `${PREFIX}${packed}.${mac(packed, organizationId).toString('base64url')}`,

    verify(text, organizationId) {
      const end = text.indexOf('.', PREFIX.length);
      if (!isMarked(text) || end === -1 || end - PREFIX.length > packedCharsMax) return undefined;
      if (text.length - end > MAC_CHARS_MAX) return undefined;
      const packed = text.slice(PREFIX.length, end);
      const received = Buffer.from(text.slice(end + 1), 'base64url');
      const expected = mac(packed, organizationId);
      return received.length === expected.length && timingSafeEqual(received, expected) ? packed : undefined;
    },
  };
}
