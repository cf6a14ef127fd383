import type { Hold } from '../src/ledger/leases/hold.ts';
import type { GenerationRecord } from '../src/ledger/records.ts';

/** A plausible generation record with the given fields replaced. */
export function generation(over: Partial<GenerationRecord> & { id: string }): GenerationRecord {
  return {
    request_id: 'req-0d5cf2f0-6a0a-4d3e-9e0f-5b8a4c1f2d3e',
    upstream_id: 'chatcmpl-CkXy1Zq8T4uP0mB7n3wVfHs6',
    api_type: 'completions',
    created_at: '2026-11-21T10:00:00.000Z',
    key_hash: 'a'.repeat(64),
    workspace_id: '6f2c1d1e-3c1b-4b7a-9f43-0c8f5a4c2b11',
    organization_id: '1e0f5a4c-9f43-4b7a-3c1b-6f2c1d1e0c8f',
    user_id: '7c1e9d3a-5b2f-4c8d-8e6a-1f0b2d4c6e8a',
    model: 'acme/fast-1',
    requested_model: 'acme/fast-1',
    provider_name: 'Acme AI',
    endpoint_id: 'acme|acme/fast-1',
    outcome: 'completed',
    streamed: true,
    cancelled: false,
    is_byok: false,
    finish_reason: 'stop',
    native_finish_reason: 'stop',
    external_user: null,
    session_id: null,
    http_referer: 'https://app.example/',
    title: 'Example App',
    categories: [],
    user_agent: 'OpenAI/JS 7.55.0',
    service_tier: null,
    latency: 412,
    generation_time: 1830,
    usage: { in_uncached: 812, out_text: 233 },
    cost_nano: 669_000,
    upstream_cost_nano: 669_000,
    cache_discount_nano: null,
    num_media_prompt: null,
    num_input_audio_prompt: null,
    attempts: [
      {
        endpoint_id: 'acme|acme/fast-1',
        provider_name: 'Acme AI',
        model_permaslug: 'acme/fast-1',
        status: 200,
        latency: 390,
        is_byok: false,
        upstream_id: 'chatcmpl-CkXy1Zq8T4uP0mB7n3wVfHs6',
        failure: null,
        cost_nano: 669_000,
        charges: [
          { class: 'in_uncached', units: 812, unit_price_pico: 250_000 },
          { class: 'out_text', units: 233, unit_price_pico: 2_000_000 },
        ],
      },
    ],
    ...over,
  };
}

/** The holds of a request that counts against no budget. */
export function noHold(id = 'g'): Hold {
  return { id, lines: [], granted_nano: 0 };
}
