/**
 * Reasoning of another vendor reaches no provider, for clients of any API: by the encoders alone, without the accounts
 * that separate state before them.
 */
import { describe, expect, test } from 'vitest';
import { chatClient } from '../../src/api/chat/client.ts';
import { messagesClient } from '../../src/api/messages/client.ts';
import { responsesClient } from '../../src/api/responses/client.ts';
import { dialects } from '../../src/providers/dialects.ts';
import type { Quirks } from '../../src/providers/quirks.ts';
import type { ChatRequest, ReasoningDetail, RequestExt, Wire } from '../../src/schemas/inner.ts';

const FORMATS = [
  'anthropic-claude-v1',
  'google-gemini-v1',
  'openai-responses-v1',
  'azure-openai-responses-v1',
  'xai-responses-v1',
  'unknown',
] as const;

/** The vendor whose reasoning each wire accepts back, and the settings with which it accepts the most. */
const TAKES: Record<Wire, { formats: readonly string[]; model: string; quirks: Quirks }> = {
  'anthropic-messages': { formats: ['anthropic-claude-v1'], model: 'claude-sonnet-4-5', quirks: {} },
  'gemini-generate-content': { formats: ['google-gemini-v1'], model: 'gemini-3-pro-preview', quirks: {} },
  'bedrock-converse': {
    formats: ['anthropic-claude-v1'],
    model: 'anthropic.claude-sonnet-4-5-20250929-v1:0',
    quirks: {},
  },
  'openai-responses': { formats: ['openai-responses-v1'], model: 'gpt-5', quirks: {} },
  'cohere-chat': {
    formats: ['unknown'],
    model: 'command-a-reasoning-08-2025',
    quirks: { replay_reasoning: 'thinking_part' },
  },
  'openai-chat': { formats: ['unknown'], model: 'deepseek-chat', quirks: { replay_reasoning: 'reasoning_content' } },
};

const CLIENTS: Record<string, RequestExt> = {
  chat: { wire: 'openai-chat', client: chatClient, rest: {} },
  Responses: { wire: 'openai-responses', client: responsesClient, rest: {} },
  Messages: { wire: 'anthropic-messages', client: messagesClient, rest: {} },
};

/** Every form that a detail may have, each with a text of its own. */
function detailsOf(format: string): ReasoningDetail[] {
  const data = Buffer.from(`data of ${format}`).toString('base64');
  const signature = Buffer.from(`signature of ${format}`).toString('base64');
  return [
    { type: 'reasoning.text', text: `signed ${format}`, signature, format, index: 0 },
    { type: 'reasoning.text', text: `plain ${format}`, format, index: 1 },
    { type: 'reasoning.summary', summary: `summary ${format}`, format, index: 2 },
    { type: 'reasoning.encrypted', data, id: 'call_1', format, index: 3 },
    { type: 'reasoning.encrypted', data: `${data}AA`, id: null, format, index: 4 },
  ];
}

function sent(wire: Wire, ext: RequestExt, format: string): string {
  const { model, quirks } = TAKES[wire];
  const call = { id: 'call_1', type: 'function' as const, function: { name: 'f', arguments: '{}' } };
  const request: ChatRequest = {
    messages: [
      { role: 'user', content: 'Q' },
      { role: 'assistant', content: 'A', reasoning_details: detailsOf(format), tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: 'R' },
    ],
    tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }],
    reasoning: { effort: 'high' },
    max_tokens: 8_000,
    ext,
  };
  const endpoint = {
    model: 'a/b',
    provider: 'p',
    upstream_model: model,
    max_completion_tokens: 32_000,
    context_length: undefined,
    input_modalities: ['text'],
    quirks,
  };
  const options = { media: new Map(), strip_state: false };
  const { body } = dialects.get(wire)!.encodeRequest(request, endpoint, options);
  return JSON.stringify(body);
}

function hasReasoning(body: string, format: string): boolean {
  return detailsOf(format).some((detail) =>
    Object.entries(detail).some(
      ([name, value]) => ['text', 'summary', 'data', 'signature'].includes(name) && body.includes(String(value)),
    ),
  );
}

describe.each(Object.entries(CLIENTS))('of a client of the %s API', (_name, ext) => {
  test.each([...dialects.keys()])('to %s', (wire) => {
    expect(FORMATS.filter((format) => hasReasoning(sent(wire, ext, format), format))).toEqual(TAKES[wire].formats);
  });
});
