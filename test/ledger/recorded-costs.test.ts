/**
 * The bills of recorded exchanges with real providers, compared with their holds: the worst case that is computed from
 * a request alone is never below the charge of its answer.
 */

import { describe, expect, test } from 'vitest';
import { chatRequest } from '../../src/api/chat/parse-request.ts';
import type { Endpoint, Model } from '../../src/catalog/model.ts';
import { type PreparedAttempt, prepareAttempt } from '../../src/inference/attempt/prepare-attempt.ts';
import { priceAttempt } from '../../src/inference/money/attempt-cost.ts';
import { costOf, exposureOf, mediaOf, promptTokens, textBytes } from '../../src/inference/money/worst-case.ts';
import { dialects } from '../../src/providers/dialects.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { createFramer } from '../../src/providers/transport/frames.ts';
import type { Candidate } from '../../src/routing/plan.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { ChatRequest, InnerPart, TokenClasses } from '../../src/schemas/inner.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { inputTokens, outputTokens } from '../../src/schemas/usage.ts';
import { messagesBytes } from '../readings/anthropic-messages.ts';
import { geminiBytes } from '../readings/gemini-generate-content.ts';
import { decodeRequest } from '../readings/gemini-requests.ts';
import { chatBytes } from '../readings/openai-chat.ts';
import {
  array,
  type NamedRecording,
  object,
  type Recording,
  recordingsOf,
  whySkipped,
} from '../readings/recordings.ts';

const PRICES = {
  prompt: 3_000_017,
  completion: 15_000_011,
  input_cache_read: 300_007,
  input_cache_write: 3_750_019,
  input_cache_write_1h: 6_000_023,
  audio: 40_000_003,
  web_search: 10_000_000_019,
  request: 5_000_011,
};

const wires = ['openai-chat', 'anthropic-messages', 'gemini-generate-content'] as const;
type Wire = (typeof wires)[number];

function candidateOf(wire: Wire, providerSlug: string, upstreamModel: string): Candidate {
  const isGpt = /gpt|^o\d/.test(upstreamModel);
  const endpoint: Endpoint = {
    id: 'recorded|model',
    model: 'recorded/model',
    provider: providerSlug,
    tag: providerSlug,
    upstream_model: upstreamModel,
    context_length: 1_000_000,
    max_completion_tokens: 128_000,
    max_prompt_tokens: undefined,
    pricing: PRICES,
    supported_parameters: undefined,
    quantization: 'unknown',
    supports_implicit_caching: false,
    input_modalities: ['text', 'image', 'file', 'audio', 'video'],
    quirks: {},
  };
  const model = { id: 'recorded/model', tokenizer: isGpt ? 'GPT' : 'Other', output_modalities: ['text'] };
  const provider: Pick<Provider, 'slug' | 'name' | 'dialect'> = {
    slug: providerSlug,
    name: providerSlug,
    dialect: wire,
  };
  return { model: model as unknown as Model, endpoint, provider: provider as Provider, excluded: undefined };
}

/** The parts of a Messages request that are not text, in the inner language. */
function partsOf(content: JsonObject[]): InnerPart[] {
  return content.flatMap((block): InnerPart[] => {
    const source = object(block['source']);
    const url = source['type'] === 'base64' ? `data:x;base64,${source['data']}` : String(source['url'] ?? '');
    if (block['type'] === 'image') return [{ type: 'image_url', image_url: { url } }];
    if (block['type'] === 'document') return [{ type: 'file', file: { file_data: url } }];
    return partsOf(array(block['content']).map(object));
  });
}

function prepare(wire: Wire, { recording }: NamedRecording): PreparedAttempt {
  const body = recording.request!.body!;
  const dialect = dialects.get(wire)!;
  const model = /models\/([^:]+):/.exec(recording.request!.path)?.[1] ?? String(body['model']);
  const candidate = candidateOf(wire, recording.provider, model);
  if (wire === 'gemini-generate-content')
    return prepareAttempt(decodeRequest(body).request, candidate) as PreparedAttempt;
  if (wire === 'openai-chat')
    return prepareAttempt(chatRequest(structuredClone(body) as never), candidate) as PreparedAttempt;
  // There is no client of this wire yet, so the body is used as it was sent.
  const request = {
    messages: array(body['messages']).map((message) => ({
      role: 'user',
      content: partsOf(array(object(message)['content']).map(object)),
    })),
    tools: array(body['tools']).map((tool) => {
      const { type = 'custom' } = object(tool);
      return type === 'custom' ? { type: 'function', function: { name: 'f' } } : { type: 'native', wire, block: tool };
    }),
  } as ChatRequest;
  const encoded = { method: 'POST' as const, path: '', headers: {}, body, report: [], state: {} };
  const outputTokens = Number(body['max_tokens']);
  const payload = JSON.stringify(body);
  const nothing = { service_tier: undefined, report: [], media: new Map() };
  return { candidate, dialect, request, encoded, payload, output_tokens: outputTokens, ...nothing };
}

/**
 * Recorded requests without an equivalent chat request: a body that is not a request, and an address that only Vertex
 * AI fetches.
 */
const UNREAD: ReadonlySet<string> = new Set([
  'google-ai-studio--test-google-test-google-model-web-fetch-tool-0.json',
  'google-vertex--test-google-test-google-url-input-videourl-0.json',
]);

const STREAMS = {
  'openai-chat': chatBytes,
  'anthropic-messages': messagesBytes,
  'gemini-generate-content': geminiBytes,
};

/** The usage that the provider reported, as our decoders read it. Undefined if it reported none. */
function usageOf(wire: Wire, recording: Recording): TokenClasses | undefined {
  const dialect = dialects.get(wire)!;
  const state = { generation_id: 'gen-1' };
  const { json } = recording.response;
  if (json !== undefined) return accumulate(dialect.decodeResponse(json, state), 1).ext.usage;
  const decoder = dialect.createStreamDecoder(state);
  const framer = createFramer('sse');
  const bytes = STREAMS[wire](recording);
  const chunks = [...framer.push(Buffer.from(bytes)), ...framer.end()].flatMap((frame) => decoder.push(frame));
  let usage: TokenClasses | undefined;
  for (const { ext } of [...chunks, ...decoder.end()])
    if (ext?.response?.usage) usage = { ...usage, ...ext.response.usage };
  return usage;
}

describe.each(wires)('%s', (wire) => {
  const recordings = recordingsOf(wire).filter(
    ({ name, recording: { request, response } }) => request?.body && response.status === 200 && !UNREAD.has(name),
  );
  const why = whySkipped(recordings, wire);

  test.skipIf(recordings.length === 0)(`no recorded charge exceeds its hold${why}`, () => {
    const above: string[] = [];
    for (const named of recordings) {
      let usage: TokenClasses | undefined;
      try {
        usage = usageOf(wire, named.recording);
      } catch {
        continue;
      }
      if (usage?.in_uncached === undefined) continue;
      const prepared = prepare(wire, named);
      const media = mediaOf(prepared);
      const prompt = promptTokens(prepared, textBytes(prepared, media), media);
      const bound = Math.max(outputTokens(usage), prepared.output_tokens ?? 0);
      const heldNano = costOf(exposureOf(prepared, prompt, bound), bound);
      const { cost_nano } = priceAttempt(usage, prepared.request, prepared.candidate, undefined);
      const [most, reported] = [prompt.text + prompt.image + prompt.audio, inputTokens(usage)];
      if (reported > most || cost_nano > heldNano)
        above.push(`${named.name}: ${reported} of ${most} tokens, ${cost_nano} of ${heldNano}`);
      if (prepared.output_tokens && outputTokens(usage) > prepared.output_tokens) {
        above.push(`${named.name}: ${outputTokens(usage)} of ${prepared.output_tokens} output tokens`);
      }
    }
    expect(above).toEqual([]);
  });
});
