import { expect, test } from 'vitest';
import type { BoundGuardrail, BuiltinFilter, CustomFilter } from '../../schemas/guardrail.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import { filterSetOf } from './filter-set.ts';
import { UNRESTRICTED } from './guardrail.ts';
import { replay } from './replay.ts';

function setOf(contentFilterBuiltins: BuiltinFilter[], contentFilters: CustomFilter[] = []) {
  const draft: BoundGuardrail = {
    id: 'draft',
    scope: 'workspace',
    ...UNRESTRICTED,
    content_filter_builtins: contentFilterBuiltins,
    content_filters: contentFilters,
  };
  const set = filterSetOf([draft]);
  if (set === undefined) throw new Error('a draft without filters');
  return set;
}

async function* kept(...texts: (string | ChatRequest)[]): AsyncGenerator<{ id: string; request: ChatRequest }> {
  for (const [at, text] of texts.entries()) {
    const request = typeof text === 'string' ? { messages: [{ role: 'user' as const, content: text }] } : text;
    yield { id: `gen-${at}`, request };
  }
}

const options = { pause: async () => {}, isLate: () => false };
const email: BuiltinFilter = { slug: 'email', action: 'redact' };
const card: BuiltinFilter = { slug: 'credit-card', action: 'block' };

test('actions are counted by request and by filter, also for filters beside one that blocks', async () => {
  const set = setOf([email, card], [{ pattern: 'project x\\d+', action: 'block', label: 'Secret project' }]);
  const requests = kept(
    'nothing here',
    'write to ann@example.com and bob@example.com',
    'pay with 4111 1111 1111 1111, receipt to ann@example.com',
    'about project x12',
  );
  expect(await replay(requests, { ...options, set })).toEqual({
    requests: 4,
    blocked: 2,
    redacted: 1,
    flagged: 0,
    filters: [
      { filter: 'email', label: 'Email address', action: 'redact', requests: 2, findings: 3 },
      { filter: 'credit-card', label: 'Credit card number', action: 'block', requests: 1, findings: 1 },
      { filter: 'custom', label: 'Secret project', action: 'block', requests: 1, findings: 1 },
    ],
    examples: [
      { generation_id: 'gen-1', action: 'redacted', filters: ['Email address'] },
      { generation_id: 'gen-2', action: 'blocked', filters: ['Email address', 'Credit card number'] },
      { generation_id: 'gen-3', action: 'blocked', filters: ['Secret project'] },
    ],
    is_complete: true,
  });
});

test('the report contains no matched text', async () => {
  const report = await replay(kept('ann@example.com', 'hidden-word'), {
    ...options,
    set: setOf([email], [{ pattern: 'hidden-\\w+', action: 'redact' }]),
  });
  expect(report.redacted).toBe(2);
  expect(JSON.stringify(report)).not.toMatch(/ann@|hidden/);
});

test('placeholders of media are not scanned', async () => {
  const url = `[image/png, 4111111111111111 bytes, sha256 ${'4111111111111111'.repeat(4)}]`;
  const request: ChatRequest = { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] };
  expect(await replay(kept(request), { ...options, set: setOf([card]) })).toMatchObject({ requests: 1, blocked: 0 });
});

test('a replay ends at its time limit and reports that it is incomplete', async () => {
  let looked = 0;
  const isLate = () => {
    looked += 1;
    return looked > 2;
  };
  const report = await replay(kept('a', 'b', 'c', 'd'), { ...options, isLate, set: setOf([email]) });
  expect(report).toMatchObject({ requests: 2, is_complete: false });
});
