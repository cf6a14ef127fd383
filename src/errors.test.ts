import { expect, test } from 'vitest';
import { GatewayError } from './errors.ts';

test('a message with a long quotation is shortened, and still states the error', () => {
  expect(new GatewayError(400, 'provider x is not known').message).toBe('provider x is not known');
  const { message } = new GatewayError(400, `provider ${'😀'.repeat(100_000)}a is not known to this gateway`);
  expect(message.length).toBeLessThanOrEqual(1_001);
  expect(message).toMatch(/^provider 😀.*….*😀a is not known to this gateway$/u);
  expect(message.isWellFormed()).toBe(true);
});
