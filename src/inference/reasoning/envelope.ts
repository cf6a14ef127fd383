import type { ReasoningDetail } from '../../schemas/inner.ts';
import { createSignedTexts, isMarked } from './signed-text.ts';

/** Characters of a packed envelope. Larger reasoning is left out. */
export const ENVELOPE_CHARS_MAX = 1024 * 1024;

/**
 * Carries reasoning of one wire through clients of another API, in a field that they send back unchanged, such as a thinking block's
 * `signature` or a reasoning item's `encrypted_content`. Bound to one organization.
 */
export interface Envelope {
  /**
   * A text that starts with `gw1.`; undefined if the details are too large. `unwrap` returns them unchanged; text that the block
   * itself shows may be left out and is restored by the parser of requests.
   */
  wrap(details: readonly ReasoningDetail[]): string | undefined;
  /**
   * The details of a text that starts with `gw1.`; empty if it was not made here for this organization, or was changed. Undefined for
   * other texts, which pass unchanged.
   */
  unwrap(text: string): ReasoningDetail[] | undefined;
}

/** The envelope of an organization. */
export type Envelopes = (organizationId: string) => Envelope;

/** Envelopes are not compressed, so their size is bounded without unpacking. */
export function createEnvelopes(secret: string): Envelopes {
  const texts = createSignedTexts(secret, 'reasoning envelope', ENVELOPE_CHARS_MAX);
  return (organizationId) => ({
    wrap(details) {
      // The base64 of this many characters is too long already.
      if (textChars(details) > ENVELOPE_CHARS_MAX) return undefined;
      const packed = Buffer.from(JSON.stringify(details)).toString('base64url');
      return packed.length > ENVELOPE_CHARS_MAX ? undefined : texts.sign(packed, organizationId);
    },
    unwrap(text) {
      if (!isMarked(text)) return undefined;
      const packed = texts.verify(text, organizationId);
      if (packed === undefined) return [];
      return JSON.parse(Buffer.from(packed, 'base64url').toString()) as ReasoningDetail[];
    },
  });
}

function textChars(details: readonly ReasoningDetail[]): number {
  let chars = 0;
  for (const detail of details) {
    if (detail.type === 'reasoning.text') chars += detail.text?.length ?? 0;
    else chars += detail.type === 'reasoning.summary' ? detail.summary.length : detail.data.length;
  }
  return chars;
}
