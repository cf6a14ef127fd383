import { createHmac, createSecretKey, hkdfSync, timingSafeEqual } from 'node:crypto';

/** Texts that travel through clients and are known again, each for one organization. */
export interface SignedTexts {
  /** `packed` has letters of base64url alone. */
  sign(packed: string, organization_id: string): string;
  /** What was signed; undefined where it was not signed here for this organization, or changed since. */
  verify(text: string, organization_id: string): string | undefined;
}

const PREFIX = 'gw1.';
/** A dot and 32 bytes in base64. */
const MAC_CHARS_MAX = 1 + 44;

/** Whether a text says that a gateway made it: such a text is nothing to any provider. */
export function isMarked(text: string): boolean {
  return text.startsWith(PREFIX);
}

/** Makes the signer of one kind of texts: HMAC-SHA-256 over what is signed and whose it is, under a key derived by HKDF (RFC 5869). */
export function createSignedTexts(secret: string, purpose: string, packed_chars_max: number): SignedTexts {
  // A key that is made once: each use of one in bytes takes ten times as long.
  const key = createSecretKey(new Uint8Array(hkdfSync('sha256', secret, '', `model-gateway ${purpose}`, 32)));
  const mac = (packed: string, organization_id: string) =>
    createHmac('sha256', key).update(`${organization_id}\n${packed}`).digest();
  return {
    sign: (packed, organization_id) => `${PREFIX}${packed}.${mac(packed, organization_id).toString('base64url')}`,

    verify(text, organization_id) {
      const end = text.indexOf('.', PREFIX.length);
      if (!isMarked(text) || end === -1 || end - PREFIX.length > packed_chars_max) return undefined;
      if (text.length - end > MAC_CHARS_MAX) return undefined;
      const packed = text.slice(PREFIX.length, end);
      const given = Buffer.from(text.slice(end + 1), 'base64url');
      const wanted = mac(packed, organization_id);
      return given.length === wanted.length && timingSafeEqual(given, wanted) ? packed : undefined;
    },
  };
}
