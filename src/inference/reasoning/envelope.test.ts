import { describe, expect, test } from 'vitest';
import type { ReasoningDetail } from '../../schemas/inner.ts';
import { createEnvelopes, ENVELOPE_CHARS_MAX } from './envelope.ts';
import { createSealer } from './seal.ts';

const envelope = createEnvelopes('secret')('org');
const details: ReasoningDetail[] = [
  { type: 'reasoning.text', text: 'Thoughts of öther wires', signature: 'c2ln', format: 'google-gemini-v1', index: 0 },
  { type: 'reasoning.summary', summary: '', format: 'openai-responses-v1', index: 1 },
  { type: 'reasoning.encrypted', data: 'ZGF0YQ==', id: 'rs_1', format: 'openai-responses-v1', index: 2 },
];

describe('an envelope', () => {
  const text = envelope.wrap(details)!;

  test('returns the wrapped details', () => {
    expect(text).toMatch(/^gw1\.[\w-]+\.[\w-]+$/);
    expect(envelope.unwrap(text)).toEqual(details);
    expect(envelope.unwrap(envelope.wrap([])!)).toEqual([]);
  });

  test('unwraps to nothing for another organization, under another secret, and after a change of any letter', () => {
    expect(createEnvelopes('secret')('other').unwrap(text)).toEqual([]);
    expect(createEnvelopes('another')('org').unwrap(text)).toEqual([]);
    // The last letter of a MAC in base64url has two unused bits.
    for (let at = 'gw1.'.length; at < text.length - 1; at += 1) {
      const changed = `${text.slice(0, at)}${text[at] === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`;
      expect(envelope.unwrap(changed)).toEqual([]);
    }
  });

  test.each(['gw1.', 'gw1..', 'gw1.a', `${text}.a`, `${text}${'a'.repeat(50)}`, `gw1.${'.'.repeat(60_000_000)}`])(
    'unwraps to nothing if a text only has its prefix',
    (other) => {
      expect(envelope.unwrap(other)).toEqual([]);
    },
  );

  test.each(['', 'EqQBCkYIChgC', 'gw2.abc.def'])('returns undefined for other texts: %s', (other) => {
    expect(envelope.unwrap(other)).toBeUndefined();
  });

  test('is not a seal, and a seal is not an envelope', () => {
    const owner = { organization_id: 'org', generation_id: 'gen-1' };
    const seal = createSealer('secret').seal({ w: 'openai-responses', i: 'openai', t: [], c: [], d: [] }, owner)!;
    expect(envelope.unwrap(seal.detail.type === 'reasoning.encrypted' ? seal.detail.data : '')).toEqual([]);
    expect(createSealer('secret').unseal(text, 'org')).toBeUndefined();
    expect(envelope.unwrap(envelope.wrap([seal.detail])!)).toEqual([seal.detail]);
  });

  test('has a maximum size', () => {
    const data = 'a'.repeat(ENVELOPE_CHARS_MAX);
    expect(envelope.wrap([{ type: 'reasoning.encrypted', data }])).toBeUndefined();
    const most = { type: 'reasoning.encrypted' as const, data: data.slice(0, ENVELOPE_CHARS_MAX * 0.74) };
    expect(envelope.unwrap(envelope.wrap([most])!)).toEqual([most]);
  });
});
