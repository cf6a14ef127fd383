import { expect, test } from 'vitest';
import { limits } from '../../limits.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { ChatRequest, InnerPart, TokenClasses } from '../../schemas/inner.ts';
import type { Call } from '../call.ts';
import { priceAttempt } from './attempt-cost.ts';
import { closeRecord, openRecord } from './generation.ts';
import { AnswerMeter } from './meter.ts';

const request: ChatRequest = { messages: [{ role: 'user', content: 'x' }] };
const candidate = {
  provider: { slug: 'acme' },
  endpoint: {
    pricing: { prompt: 1_000_000, completion: 2_000_000 },
    price_tiers: [
      { prompt_tokens_over: 200, price: { prompt: 2_000_000, completion: 4_000_000 } },
      { prompt_tokens_over: 400, price: { prompt: 3_000_000, completion: 6_000_000 } },
    ],
  },
} as unknown as Candidate;
const price = (usage: TokenClasses) =>
  priceAttempt(usage, request, candidate, {
    pricesOf: (_provider, model) =>
      model === 'side'
        ? { pricing: { prompt: 10_000_000, completion: 0 } }
        : model === 'fee'
          ? { pricing: { prompt: 1_000_000, completion: 0, request: 7_000_000 } }
          : undefined,
  }).cost_nano;

test.each<[string, TokenClasses, number]>([
  ['up to the first tier', { in_uncached: 200, out_text: 1 }, 200_000 + 2_000],
  ['beyond the first tier', { in_uncached: 201, out_text: 1 }, 402_000 + 4_000],
  ['cached input counts toward the tier', { in_uncached: 1, in_cache_read: 400, out_text: 0 }, 1_203_000],
  [
    'another model at its own price',
    { in_uncached: 1, out_text: 1, extra: [{ model: 'side', classes: { in_uncached: 5 } }] },
    1_000 + 2_000 + 50_000,
  ],
  [
    'another model without a price at the price of the endpoint',
    { in_uncached: 1, extra: [{ model: 'unknown', classes: { in_uncached: 5 } }] },
    6_000,
  ],
  [
    'another model without a second request fee',
    { in_uncached: 1, counts: { web_search: 0 }, extra: [{ model: 'fee', classes: { in_uncached: 1 } }] },
    1_000 + 1_000,
  ],
])('the cost of usage: %s', (_title, usage, nano) => {
  expect(price(usage)).toBe(nano);
});

const NOTHING = { attempts: [], fees: [] };

test('the creation time of a record is in ISO format, whatever the previous record’s time', () => {
  const moments = [
    0, 7, 1_795_311_141_152, 1_795_311_141_009, 1_795_311_142_000, 1_795_311_141_999.9, 253_402_300_800_001,
  ];
  for (const acceptedMs of moments) {
    const call = { request, principal: {}, attribution: {}, accepted_ms: acceptedMs } as unknown as Call;
    const { created_at } = openRecord(call, { ...candidate, model: { id: 'm' } } as unknown as Candidate, NOTHING);
    expect(created_at).toBe(new Date(acceptedMs).toISOString());
  }
});

test('the record counts the media of the request, and the native finish reason of the upstream is cut at its bound', () => {
  const content: InnerPart[] = [
    { type: 'text', text: 'x' },
    { type: 'image_url', image_url: { url: 'data:image/png;base64,' } },
    { type: 'input_audio', input_audio: { data: '', format: 'wav' } },
  ];
  const call = {
    request: { messages: [{ role: 'user', content }] },
    principal: {},
    attribution: {},
    accepted_ms: 0,
  } as unknown as Call;
  const open = openRecord(call, { ...candidate, model: { id: 'm' } } as unknown as Candidate, NOTHING);
  expect(open).toMatchObject({ num_media_prompt: 2, num_input_audio_prompt: 1 });
  const meter = new AnswerMeter();
  meter.chunk({ delta: {}, finish_reason: 'stop', native_finish_reason: 'x'.repeat(10_000) });
  const facts = {
    meter,
    usage: null,
    cache_discount_nano: null,
    finish_reason: null,
    outcome: 'completed' as const,
  };
  const closed = closeRecord(open, NOTHING, { ...facts, latency: null, generation_time: null });
  expect(closed.native_finish_reason).toBe('x'.repeat(limits.upstream_word_chars_max));
});
