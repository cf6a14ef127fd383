import { limits } from '../../limits.ts';
import type { ReasoningDetail } from '../../schemas/inner.ts';
import { createSignedTexts, isMarked } from './signed-text.ts';

/**
 * Carries reasoning of one wire through clients of another: in a field that those send back as it came, such as a thinking
 * block's `signature` or a reasoning item's `encrypted_content`. Bound to one organization.
 */
export interface Envelope {
  /**
   * A text that starts with `gw1.`; undefined where the details are larger than an envelope may be. They come back as they
   * went in: what the block itself shows need not be in them, the door puts it back.
   */
  wrap(details: readonly ReasoningDetail[]): string | undefined;
  /**
   * The details of a text that starts with `gw1.`: none where it was not made here for this organization, or changed since.
   * Undefined: the text is another's, and passes as it is.
   */
  unwrap(text: string): ReasoningDetail[] | undefined;
}

/** The envelopes of each organization, made from a gateway's secret. */
export type Envelopes = (organization_id: string) => Envelope;

/** Makes the envelopes of a gateway. They are not compressed, so that none is larger than it looks. */
export function createEnvelopes(secret: string): Envelopes {
  const texts = createSignedTexts(secret, 'reasoning envelope', limits.envelope_chars_max);
  return (organization_id) => ({
    wrap(details) {
      const packed = Buffer.from(JSON.stringify(details)).toString('base64url');
      return packed.length > limits.envelope_chars_max ? undefined : texts.sign(packed, organization_id);
    },
    unwrap(text) {
      if (!isMarked(text)) return undefined;
      const packed = texts.verify(text, organization_id);
      if (packed === undefined) return [];
      return JSON.parse(Buffer.from(packed, 'base64url').toString()) as ReasoningDetail[];
    },
  });
}
