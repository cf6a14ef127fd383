import { expect, test } from 'vitest';
import type { Provider } from '../../providers/provider.ts';
import { transcriptionDialects } from '../../providers/transcription/dialects.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { ChatRequest, Wire } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { type PreparedAttempt, prepareAttempt } from '../attempt/prepare-attempt.ts';

function candidateOf(wire: Wire): Candidate {
  const endpoint = {
    model: 'b/c',
    provider: 'a',
    upstream_model: 'model',
    pricing: {},
    input_modalities: [],
    quirks: {},
  };
  const model = { id: 'b/c', tokenizer: 'Other', output_modalities: ['text'] };
  return { model, endpoint, provider: { slug: 'a', name: 'A', dialect: wire } as Provider } as unknown as Candidate;
}

function sent(wire: Wire, options: JsonObject, fields: JsonObject = {}) {
  const request = {
    messages: [{ role: 'user', content: 'Hi' }],
    max_tokens: 64,
    ...fields,
    provider: { options: { a: options } },
  };
  return prepareAttempt(request as unknown as ChatRequest, candidateOf(wire)) as PreparedAttempt;
}

/** Options that add uncounted cost, several answers or another destination. */
const DENIED: [Wire, JsonObject][] = [
  ['openai-chat', { n: 3, best_of: 3, num_return_sequences: 3, num_generations: 3 }],
  ['openai-chat', { deferred: true, store: true, background: true }],
  [
    'openai-chat',
    { models: ['x/dear'], fallbacks: ['x/dear'], base_url: 'https://a.example', api_base: 'https://a.example' },
  ],
  ['openai-chat', { data_sources: [{ type: 'azure_search' }] }],
  ['openai-responses', { tools: [{ type: 'image_generation' }, { type: 'web_search' }], max_tool_calls: 999 }],
  ['openai-responses', { max_output_tokens: 9_999, background: true, store: true, prompt: { id: 'p' } }],
  [
    'anthropic-messages',
    { thread: { id: 't' }, billing_policy: 'x', fallback_credit_token: 't', fallbacks: 'default' },
  ],
  ['anthropic-messages', { anthropic_beta: ['context-1m-2025-08-07'] }],
  ['gemini-generate-content', { serviceTier: 3 }],
  ['gemini-generate-content', { serviceTier: 'SERVICE_TIER_PRIORITY', service_tier: 'priority' }],
  ['gemini-generate-content', { generation_config: { candidateCount: 4 }, cached_content: 'cachedContents/1' }],
  [
    'bedrock-converse',
    { guardrailConfig: { guardrailIdentifier: 'g' }, toolConfig: {}, performanceConfig: { latency: 'optimized' } },
  ],
  ['cohere-chat', { num_generations: 5, max_tokens: 9_999 }],
];

test.each(DENIED)('options do not set reserved fields on %s: %j', (wire, options) => {
  const plain = sent(wire, {});
  const merged = sent(wire, options);
  expect(merged.encoded.body).toEqual(plain.encoded.body);
  expect(merged.report.map(({ field }) => field)).toEqual(
    Object.keys(options).map((name) => `provider.options.a.${name}`),
  );
});

test.each([
  'max_tokens',
  'max_output_tokens',
  'maxTokenCount',
  'textGenerationConfig',
  'numResults',
  'tools',
  'anthropic_beta',
  'service_tier',
])('options do not send %s to a Bedrock model', (name) => {
  const { encoded } = sent('bedrock-converse', { additionalModelRequestFields: { [name]: 9, top_k: 3 } });
  expect(encoded.body['additionalModelRequestFields']).toEqual({ top_k: 3 });
});

test('extra fields reach upstreams of the same wire, except those that the gateway sets', () => {
  const denied = { deferred: true, previous_response_id: 'r', background: true, api_key: 'sk', data_sources: [] };
  const { encoded, report } = sent('openai-chat', {}, { ...denied, min_p: 0.1 });
  expect(encoded.body).toMatchObject({ min_p: 0.1 });
  for (const name of Object.keys(denied)) expect(encoded.body).not.toHaveProperty(name);
  expect(report.map(({ field }) => field)).toEqual(Object.keys(denied));
});

test.each([
  ['deepgram-transcription', ['tier', 'version', 'multichannel', 'callback']],
  ['assemblyai-transcription', ['domain', 'dual_channel', 'multichannel', 'webhook_url']],
] as const)('%s reserves fields with a price or a destination of their own', (wire, names) => {
  for (const name of names) expect(transcriptionDialects[wire].reserved.has(name), name).toBe(true);
});

test("under a spend limit, Anthropic's own tools in options are bounded like those of the request", () => {
  const search = { type: 'web_search_20250305', name: 'web_search' };
  const tools = [search, { type: 'advisor_20260301', name: 'advisor', model: 'claude-opus-5' }, { name: 'f' }];
  const request = {
    messages: [{ role: 'user', content: 'Hi' }],
    max_tokens: 64,
    provider: { options: { a: { tools } } },
  };
  const prepare = (spend?: { default_tokens: number }) => {
    const candidate = candidateOf('anthropic-messages');
    const chatRequest = request as unknown as ChatRequest;
    return (prepareAttempt(chatRequest, candidate, { spend }) as PreparedAttempt).encoded.body['tools'];
  };
  expect(prepare({ default_tokens: 9 })).toEqual([{ ...search, max_uses: 10 }, { name: 'f' }]);
  expect(prepare()).toEqual(tools);
});
