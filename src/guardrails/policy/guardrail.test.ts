import { expect, test } from 'vitest';
import { checkGuardrail } from './guardrail.ts';

const pause = () => Promise.resolve();

test('patterns that take too long to compile together are refused before any is compiled', async () => {
  const large = { pattern: '[\\pL\\pN\\pM\\pP]+'.repeat(20), action: 'redact' as const };
  await expect(checkGuardrail({ content_filters: [large] }, pause)).resolves.toBeUndefined();
  await expect(checkGuardrail({ content_filters: Array.from({ length: 20 }, () => large) }, pause)).rejects.toThrow(
    /^content_filters are too large together: compiling them may take \d+ steps, 60000 are allowed$/,
  );
});
