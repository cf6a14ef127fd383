import { hash } from 'node:crypto';

/** The signature of a thinking text. It is opaque to clients and checked when a client returns the text. */
export function thinkingSignature(text: string): string {
  return `sandbox${hash('sha256', `thinking\n${text}`, 'base64')}`;
}
