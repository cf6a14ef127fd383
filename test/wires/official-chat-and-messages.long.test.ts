/** The twenty requests as they are sent to OpenAI and Anthropic, checked against the types of their own clients. */
import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../src/errors.ts';
import { anthropicModelQuirks } from '../../src/providers/anthropic-messages/model-quirks.ts';
import { dialects } from '../../src/providers/dialects.ts';
import type { Quirks } from '../../src/providers/quirks.ts';
import { providerRow } from '../../src/providers/table.ts';
import type { Wire } from '../../src/schemas/inner.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { twentyMedia, twentyRequests } from '../twenty-requests.ts';
import { faultsByType } from './compiled-literals.ts';

interface Subject {
  wire: Wire;
  model: string;
  module: string;
  type: string;
  quirks: Quirks;
  /** Refused by the gateway: no model of the provider accepts them. */
  refused: string[];
  /** Fields that the types lack, by request, and why they are sent. */
  beyond: Record<string, string>;
}

const openai = providerRow.get('openai')!.quirks;
const chat = {
  wire: 'openai-chat' as const,
  module: 'openai/resources/chat/completions/completions.mjs',
  type: 'ChatCompletionCreateParams',
  refused: [],
  beyond: { video: 'servers of open models take film; models that do not are never asked' },
};
const messages = {
  wire: 'anthropic-messages' as const,
  module: '@anthropic-ai/sdk/resources/messages/messages.mjs',
  type: 'MessageCreateParams',
  refused: ['audio', 'video'],
  beyond: {},
};
/** Fields that an endpoint of OpenAI does not support are removed before the dialect sees them. */
const foreign = ['top_k', 'min_p', 'top_a', 'repetition_penalty'];
const subjects: Subject[] = [
  { ...chat, model: 'gpt-5', quirks: { ...openai, refused_parameters: foreign } },
  { ...messages, model: 'claude-opus-5-5', quirks: anthropicModelQuirks('claude-opus-5-5') },
  ...['claude-sonnet-4-5', 'claude-3-haiku'].map((model) => ({
    ...messages,
    model,
    quirks: anthropicModelQuirks(model),
    beyond: { 'all that bears on sampling': 'the types are of the newest models, which have no sampling; these do' },
  })),
];

function encode({ wire, model, quirks }: Subject, name: string): JsonObject {
  const endpoint = {
    model: `maker/${model}`,
    provider: 'maker',
    upstream_model: model,
    max_completion_tokens: 8_000,
    context_length: 200_000,
    input_modalities: ['text', 'image', 'file', 'audio'],
    quirks,
  };
  return dialects.get(wire)!.encodeRequest(twentyRequests[name]!, endpoint, { media: twentyMedia, strip_state: false })
    .body;
}

test('the types reject invalid bodies', async () => {
  const body = { model: 'm', messages: [{ role: 'user', content: 'Hello' }] };
  const faults = {
    ...(await faultsByType(chat.module, chat.type, { 'chat, right': body, 'chat, wrong': { ...body, top_k: 1 } })),
    ...(await faultsByType(messages.module, messages.type, {
      'messages, right': { ...body, max_tokens: 1 },
      'messages, without a bound': body,
      'messages, with a part of another wire': {
        model: 'm',
        max_tokens: 1,
        messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'a' } }] }],
      },
    })),
  };
  expect(Object.keys(faults)).toEqual([
    'chat, wrong',
    'messages, without a bound',
    'messages, with a part of another wire',
  ]);
});

describe.each(subjects)('the twenty requests to $model', (subject) => {
  test('match the types, or are listed', async () => {
    const bodies: Record<string, JsonObject> = {};
    for (const name of Object.keys(twentyRequests)) {
      if (subject.refused.includes(name)) expect(() => encode(subject, name), name).toThrow(GatewayError);
      else bodies[name] = encode(subject, name);
    }
    const faults = await faultsByType(subject.module, subject.type, bodies);
    expect(Object.keys(faults), JSON.stringify(faults, null, 1)).toEqual(Object.keys(subject.beyond));
  });
});
