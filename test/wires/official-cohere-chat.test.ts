/**
 * The gateway's requests to Cohere and Cohere's answers in the tests, checked against the schemas with which the
 * provider's own client parses. The package exports only its client, so they are taken from its files.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, expect, test } from 'vitest';
import { answerTo } from '../../sandbox/answer.ts';
import { cohereChat as sandboxWire } from '../../sandbox/cohere-chat.ts';
import { readFaults } from '../../sandbox/faults.ts';
import { GatewayError } from '../../src/errors.ts';
import { cohereChat } from '../../src/providers/cohere-chat/index.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { twentyMedia, twentyRequests } from '../twenty-requests.ts';

interface Schema {
  parse(value: JsonValue, options: { unrecognizedObjectKeys: 'fail' | 'passthrough' }): { errors?: unknown[] };
}
const file = new URL('../../node_modules/cohere-ai/serialization/index.js', import.meta.url).pathname;
const schemas = createRequire(import.meta.url)(file) as Record<
  'V2ChatRequest' | 'V2ChatStreamRequest' | 'V2ChatResponse' | 'V2ChatStreamResponse',
  Schema
>;

function faultsOf(schema: Schema, value: JsonValue, unrecognizedObjectKeys: 'fail' | 'passthrough' = 'fail') {
  return schema.parse(value, { unrecognizedObjectKeys }).errors ?? [];
}

test('the schemas reject invalid bodies', () => {
  const messages = [{ role: 'user', content: 'Hello' }];
  expect(faultsOf(schemas.V2ChatRequest, { model: 'm', messages })).toEqual([]);
  expect(faultsOf(schemas.V2ChatRequest, { model: 'm', messages, top_p: 1 })).not.toEqual([]);
  expect(
    faultsOf(schemas.V2ChatRequest, { model: 'm', messages: [{ role: 'user', content: [{ type: 'file' }] }] }),
  ).not.toEqual([]);
  expect(faultsOf(schemas.V2ChatRequest, { model: 'm', messages, tool_choice: 'AUTO' })).not.toEqual([]);
});

describe('of the twenty requests', () => {
  /** Content of a type that the wire lacks is refused here, before it would be there. */
  const refused = ['a PDF', 'audio', 'video'];
  for (const thinks of [false, true]) {
    test.each(Object.entries(twentyRequests))(
      `%s, to a model that ${thinks ? 'thinks' : 'does not think'}`,
      (name, request) => {
        const endpoint = {
          model: 'cohere/command-a',
          provider: 'cohere',
          upstream_model: 'command-a',
          max_completion_tokens: 8_000,
          context_length: 256_000,
          input_modalities: ['text', 'image'],
          quirks: thinks ? { replay_reasoning: 'thinking_part' as const } : {},
        };
        const encode = () => cohereChat.encodeRequest(request, endpoint, { media: twentyMedia, strip_state: false });
        if (refused.includes(name)) {
          expect(encode).toThrow(GatewayError);
          return;
        }
        const { stream, ...body } = encode().body;
        expect(faultsOf(stream === true ? schemas.V2ChatStreamRequest : schemas.V2ChatRequest, body)).toEqual([]);
        // The sandbox is as strict as the provider: both accept the same requests.
        expect(() => sandboxWire.check({ ...body, stream: stream ?? false }, {})).not.toThrow();
      },
    );
  }
});

describe('the test data are answers of the provider', () => {
  const folder = new URL('../transcripts/cohere-chat/', import.meta.url);
  const names = readdirSync(folder).filter((name) => name.endsWith('.txt'));
  /** Broken on purpose, or of a model that is older than these types. */
  const broken = ['error-event.txt', 'error-in-a-200-body.txt', 'html-in-a-200-stream.txt', 'toxic.txt'];
  test.each(names.filter((name) => !broken.includes(name)))('%s', (name) => {
    const [, head = '', answer = ''] =
      /^=== upstream answer (.*)\n([\s\S]*?)(?=^=== |$(?![\s\S]))/m.exec(readFileSync(new URL(name, folder), 'utf8')) ??
      [];
    // Requests that are refused here have no answer.
    if (!name.endsWith('-refused.txt')) expect(head).toMatch(/^\d{3} /);
    if (!head.startsWith('200')) return;
    if (head.includes('json')) expect(faultsOf(schemas.V2ChatResponse, JSON.parse(answer))).toEqual([]);
    else
      for (const event of eventsOf(answer))
        expect(faultsOf(schemas.V2ChatStreamResponse, event, 'passthrough')).toEqual([]);
  });

  test.each(['echo', 'tools', 'think', 'json', 'refuse'] as const)(
    'the sandbox’s answer matches the schema: %s',
    (behaviour) => {
      const parameters = { type: 'object', properties: { city: { type: 'string' } } };
      const body: JsonObject = {
        model: 'm',
        messages: [{ role: 'user', content: 'Hello' }],
        tools: [{ type: 'function', function: { name: 'get_weather', parameters } }],
        thinking: { type: 'enabled' },
      };
      const prompt = sandboxWire.readPrompt(body);
      const faults = readFaults({}, {}, {});
      const cache = { read_tokens: 3, write_5m_tokens: 0, write_1h_tokens: 0 };
      const answer = answerTo(prompt, behaviour, faults);
      const envelope = { answer, prompt, cache, faults, id: 'a', created: 0, body };
      expect(faultsOf(schemas.V2ChatResponse, sandboxWire.encodeBody(envelope))).toEqual([]);
      const events = eventsOf([...sandboxWire.encodeStream(envelope)].join(''));
      expect(events.length).toBeGreaterThan(3);
      for (const event of events) expect(faultsOf(schemas.V2ChatStreamResponse, event, 'passthrough')).toEqual([]);
    },
  );
});

function eventsOf(stream: string): JsonValue[] {
  return [...stream.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data ?? '') as JsonValue);
}
