import { hash } from 'node:crypto';

/** The signature of a thinking text: opaque to clients, checked when the text comes back. */
export function thinkingSignature(text: string): string {
  return `sandbox${hash('sha256', `thinking\n${text}`, 'base64')}`;
}
