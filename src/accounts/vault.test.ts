import { expect, test } from 'vitest';
import { createVault } from './vault.ts';

const SECRET = 'a-secret-of-a-gateway-0123456789abcdef';

test('a sealed text opens at its place, and sealing it again gives another text', () => {
  const vault = createVault(SECRET);
  const sealed = vault.seal('sk-ü\u0000-1', 'byok o 1');
  expect(vault.open(sealed, 'byok o 1')).toBe('sk-ü\u0000-1');
  expect(createVault(SECRET).open(sealed, 'byok o 1')).toBe('sk-ü\u0000-1');
  expect(vault.seal('sk-ü\u0000-1', 'byok o 1')).not.toBe(sealed);
  expect(Buffer.from(sealed.split('.')[2] ?? '', 'base64url').includes('sk-')).toBe(false);
});

test('another secret, another place and a changed text are distinguished and not opened', () => {
  const vault = createVault(SECRET);
  const sealed = vault.seal('credential', 'byok o 1');
  expect(() => createVault(`${SECRET}!`).open(sealed, 'byok o 1')).toThrow(/another GATEWAY_SECRET/);
  expect(() => vault.open(sealed, 'byok o 2')).toThrow(/changed, or belongs to another/);
  const [format, keyId, body = ''] = sealed.split('.');
  const bytes = Buffer.from(body, 'base64url');
  for (const at of [0, 12, bytes.length - 1]) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(() => vault.open(`${format}.${keyId}.${changed.toString('base64url')}`, 'byok o 1')).toThrow(/changed/);
  }
  for (const length of [0, 5, 12, 20, bytes.length - 1]) {
    const cut = bytes.subarray(0, length).toString('base64url');
    expect(() => vault.open(`${format}.${keyId}.${cut}`, 'byok o 1')).toThrow(/changed/);
  }
  expect(() => vault.open('v9.00000000.abc', 'byok o 1')).toThrow(/format/);
});
