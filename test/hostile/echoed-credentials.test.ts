/** If a provider repeats the received credential in any notation, no client sees it. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CREDENTIAL_ECHO_CHARS_MAX } from '../../src/inference/attempt/echoed-credentials.ts';
import { redact } from '../../src/inference/attempt/failure.ts';
import { limits } from '../../src/limits.ts';
import { startGateway } from '../harness.ts';

const random = (alphabet: string, least: number, most: number) =>
  fc.array(fc.constantFrom(...alphabet), { minLength: least, maxLength: most }).map((chars) => chars.join(''));
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const credential = fc.oneof(
  random(LETTERS, 20, 120),
  fc
    .tuple(fc.constantFrom('sk-', 'sk-ant-api03-', 'gw_', 'a.b/'), random(`${LETTERS}-_.~/+=%&"`, 30, 100))
    .map((two) => two.join('')),
);

const percent = (text: string, every: boolean) =>
  Array.from(text, (char) =>
    every || /[^A-Za-z0-9]/.test(char) ? `%${Buffer.from(char).toString('hex')}` : char,
  ).join('');
const base64 = (text: string) => Buffer.from(text).toString('base64');

/** Notations of a credential. */
const WAYS: Record<string, (secret: string) => string> = {
  unchanged: (secret) => secret,
  'in upper case': (secret) => secret.toUpperCase(),
  'in lower case': (secret) => secret.toLowerCase(),
  spaced: (secret) => [...secret].join(' '),
  hyphenated: (secret) => [...secret].join('-'),
  'in chunks of four': (secret) => secret.replace(/.{4}/g, '$& '),
  'over several lines': (secret) => secret.replace(/.{7}/g, '$&\n  '),
  'with invisible characters': (secret) => [...secret].join('\u200b'),
  'in base64': base64,
  'in base64 without padding': (secret) => base64(secret).replace(/=+$/, ''),
  'in base64url': (secret) => Buffer.from(secret).toString('base64url'),
  'in base64 over several lines': (secret) => base64(secret).replace(/.{16}/g, '$&\r\n'),
  'as user and password of basic authentication': (secret) => `Basic ${base64(`user:${secret}`)}`,
  'as user of basic authentication': (secret) => `Basic ${base64(`${secret}:`)}`,
  'behind a colon in base64': (secret) => base64(`:${secret}`),
  'with its scheme in base64': (secret) => base64(`Bearer ${secret}`),
  'in a URL': (secret) => `https://x.example/?key=${encodeURIComponent(secret)}&v=1`,
  'in a URL, with few characters escaped': (secret) => encodeURI(secret),
  'in a form body': (secret) => new URLSearchParams({ key: secret }).toString(),
  'in the text of a page': (secret) =>
    secret.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('/', '&#x2f;'),
  'with special characters percent-encoded': (secret) => percent(secret, false),
  'percent-encoded twice': (secret) => encodeURIComponent(percent(secret, false)),
  'in JSON': (secret) => JSON.stringify({ error: { key: secret } }),
  'in JSON, escaped': (secret) =>
    secret.replace(/[^A-Za-z0-9]/g, (char) => `\\u00${char.charCodeAt(0).toString(16).padStart(2, '0')}`),
  'in HTML': (secret) => secret.replace(/[^A-Za-z0-9]/g, (char) => `&#${char.charCodeAt(0)};`),
  'in hexadecimal': (secret) => Buffer.from(secret).toString('hex'),
  'its first half': (secret) => secret.slice(0, Math.ceil(secret.length / 2) + 6),
};

const reduced = (text: string) => text.replace(/[^A-Za-z0-9]/g, '').toLowerCase();

test.each(Object.entries(WAYS))('%s', (_way, write) => {
  fc.assert(
    fc.property(
      credential,
      fc.constantFrom('', 'The key ', 'Error: '),
      fc.constantFrom('', ' is not valid.', '"}'),
      (secret, before, after) => {
        const echo = write(secret);
        const shown = redact(`${before}${echo}${after}`, secret);
        expect(shown).toContain('[redacted]');
        // No part of it that is long enough to be useful remains.
        const left = reduced(shown.replaceAll('[redacted]', '|')).slice(0, 4_000);
        const reducedEcho = reduced(echo);
        for (let at = 0; at + 12 <= reducedEcho.length; at += 1) {
          const part = reducedEcho.slice(at, at + 12);
          if (reduced(secret).includes(part)) expect(left).not.toContain(part);
        }
        expect(shown.startsWith(before.trimEnd().split(' ')[0]!)).toBe(true);
      },
    ),
    { numRuns: 100 },
  );
});

test('text that only mentions keys and addresses is shown', () => {
  const account = JSON.stringify({
    type: 'service_account',
    project_id: 'my-project-of-2026',
    private_key: `-----BEGIN PRIVATE KEY-----\n${'Ab3d'.repeat(40)}\n-----END PRIVATE KEY-----\n`,
    client_email: 'robot@my-project-of-2026.iam.gserviceaccount.com',
    token_uri: 'https://oauth2.googleapis.com/token',
  });
  for (const text of [
    'Permission denied for aiplatform.endpoints.predict on googleapis.com; see https://cloud.google.com/iam',
    'The model gpt-4o does not exist or you do not have access to it.',
    'max_tokens must be at least 1, and temperature at most 2',
  ]) {
    expect(redact(text, account)).toBe(text);
    expect(redact(text, 'sk-proj-abcDEF0123456789abcDEF0123456789')).toBe(text);
  }
  expect(redact(`got ${'Ab3d'.repeat(20)}`, account)).toBe('got [redacted]');
});

test('a text and a credential are searched up to their bounds', () => {
  const secret = 'q1'.repeat(CREDENTIAL_ECHO_CHARS_MAX * 8);
  expect(redact('q1'.repeat(1_000_000), secret).length).toBeLessThanOrEqual(limits.upstream_raw_chars_max + 1);
});

test('a running gateway shows no credential in whole answers, streams and early failures, nor its own headers', async () => {
  const secret = 'sk-live/9f8e7d6c5b4a39281706f5e4d3c2b1a0';
  const header = 'hdr-0a1b2c3d4e5f60718293a4b5c6d7e8f9';
  const upstream = createServer((_request, response) => {
    const message = Object.values(WAYS)
      .map((write) => `${write(secret)} ${write(header)}`)
      .slice(0, 12)
      .join(' | ')
      .slice(0, 1_900);
    response.writeHead(400, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message, code: base64(secret) } }));
  });
  await new Promise<void>((resolve) => {
    upstream.listen(0, '127.0.0.1', resolve);
  });
  const baseUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
  const gateway = await startGateway({
    yaml: JSON.stringify({
      bundled_catalog: false,
      providers: {
        acme: {
          name: 'Acme',
          dialect: 'openai-chat',
          base_url: baseUrl,
          api_key: secret,
          headers: { 'x-api-key': header },
        },
      },
      models: {
        'acme/m': { endpoints: [{ provider: 'acme', upstream_model: 'm', pricing: { prompt: 1, completion: 1 } }] },
      },
    }),
  });
  try {
    for (const stream of [false, true]) {
      const answer = await gateway.call('POST', '/chat/completions', {
        model: 'acme/m',
        stream,
        messages: [{ role: 'user', content: 'x' }],
      });
      const text = await answer.text();
      expect(text).toContain('[redacted]');
      for (const part of ['9f8e7d6c5b4a', '0a1b2c3d4e5f', base64(secret).slice(2, 14)]) {
        expect(reduced(text)).not.toContain(reduced(part));
      }
    }
    expect(reduced(gateway.log_lines.join())).not.toContain('9f8e7d6c5b4a');
  } finally {
    await gateway.stop();
    upstream.closeAllConnections();
    upstream.close();
  }
});
