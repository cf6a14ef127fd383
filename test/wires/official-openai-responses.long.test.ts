/**
 * The gateway's requests to a Responses upstream and the sandbox's answers, checked by the compiler against the types
 * of OpenAI's own client: the objects are written as literals, so that a name that the types lack is an error.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { answerTo } from '../../sandbox/answer.ts';
import { readFaults } from '../../sandbox/faults.ts';
import { openAiResponses as sandboxWire } from '../../sandbox/openai-responses.ts';
import { encryptReasoning } from '../../sandbox/openai-responses-checks.ts';
import { GatewayError } from '../../src/errors.ts';
import type { DialectEndpoint } from '../../src/providers/dialect.ts';
import { openaiResponses } from '../../src/providers/openai-responses/index.ts';
import type { Quirks } from '../../src/providers/quirks.ts';
import type { ChatRequest } from '../../src/schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { twentyMedia, twentyRequests } from '../twenty-requests.ts';

const compiler = new URL('../../node_modules/.bin/tsc', import.meta.url).pathname;
const types = new URL('../../node_modules/openai/resources/responses/responses.mjs', import.meta.url).pathname;

/** The compiler's messages for values as literals of a type; empty if they match. */
async function faultsOf(type: string, values: Record<string, JsonValue>): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'official-'));
  try {
    const constants = Object.entries(values).map(
      ([name, value], i) => `/* ${name} */ export const a${i}: official.${type} = ${JSON.stringify(value)};`,
    );
    const file = join(folder, 'literals.ts');
    await writeFile(file, [`import type * as official from '${types}';`, ...constants].join('\n'));
    const options = ['--ignoreConfig', '--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext'];
    await promisify(execFile)(compiler, [...options, '--target', 'es2024', file]);
    return [];
  } catch (error) {
    const { stdout } = error as { stdout?: string };
    if (!stdout) throw error;
    return stdout.split('\n').filter((line) => line !== '');
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** No endpoint of this wire accepts these: they are refused here, before they would be there. */
const refused = ['audio', 'video'];
const kinds: Record<string, Quirks> = {
  'a model that thinks': { cache_control: true, reasoning_summary: 'auto' },
  'a model that does not think': { no_encrypted_reasoning: true, reasoning_field: 'none' },
};

function encode(request: ChatRequest, quirks: Quirks): JsonObject {
  const endpoint: DialectEndpoint = {
    model: 'openai/gpt-5',
    provider: 'openai',
    upstream_model: 'gpt-5',
    max_completion_tokens: 8_000,
    context_length: 400_000,
    input_modalities: ['text', 'image', 'file'],
    quirks,
  };
  return openaiResponses.encodeRequest(request, endpoint, { media: twentyMedia, strip_state: false }).body;
}

test('the types reject invalid bodies', async () => {
  const input = [{ role: 'user', content: 'Hello' }];
  const faults = await faultsOf('ResponseCreateParams', {
    right: { model: 'm', input },
    'a name of another wire': { model: 'm', input, max_tokens: 20 },
    'a part of another wire': { model: 'm', input: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }] },
    'a tool of another wire': { model: 'm', input, tools: [{ type: 'function', function: { name: 'one' } }] },
  });
  const lines = new Set(faults.flatMap((fault) => /literals\.ts\((\d+),/.exec(fault)?.[1] ?? []));
  expect([...lines]).toEqual(['3', '4', '5']);
});

describe.each(Object.entries(kinds))('the twenty requests, to %s', (_, quirks) => {
  const requests = Object.entries(twentyRequests);

  test('are refused if no endpoint accepts them', () => {
    for (const [name, request] of requests) {
      if (refused.includes(name)) expect(() => encode(request, quirks), name).toThrow(GatewayError);
      else expect(encode(request, quirks)['store'], name).toBe(false);
    }
  });

  test('match the types', async () => {
    const bodies = requests.flatMap(([name, request]) =>
      refused.includes(name) ? [] : [[name, encode(request, quirks)]],
    );
    expect(await faultsOf('ResponseCreateParams', Object.fromEntries(bodies))).toEqual([]);
  });

  test.each(requests.filter(([name]) => !refused.includes(name)))('the sandbox accepts: %s', (_name, request) => {
    const text = JSON.stringify(encode(request, quirks)).replaceAll('"ZW5j"', JSON.stringify(encryptReasoning('why')));
    expect(() => sandboxWire.check(JSON.parse(text), {})).not.toThrow();
  });
});

describe('the sandbox’s answer', () => {
  const body: JsonObject = {
    model: 'm',
    input: [{ role: 'user', content: 'Hello' }],
    tools: [{ type: 'function', name: 'get_weather', parameters: { type: 'object', properties: {} }, strict: false }],
    reasoning: { effort: 'high', summary: 'auto' },
    include: ['message.output_text.logprobs'],
    top_logprobs: 1,
  };
  const envelopes = (['echo', 'tools', 'think', 'refuse'] as const).map((behaviour) => {
    const prompt = sandboxWire.readPrompt(body);
    const faults = readFaults({}, {}, {});
    const cache = { read_tokens: 3, write_5m_tokens: 0, write_1h_tokens: 0 };
    return { answer: answerTo(prompt, behaviour, faults), prompt, cache, faults, id: 'a', created: 0, body };
  });

  test('is a stream of events that match the types', async () => {
    const events = envelopes.flatMap((envelope) =>
      [...sandboxWire.encodeStream(envelope)].map(
        (event) => JSON.parse(/^data: (.*)$/m.exec(event)![1]!) as JsonObject,
      ),
    );
    const byType = new Map(events.map((event) => [String(event['type']), event]));
    // Padding is on the wire, but in no type.
    const bare = [...byType].map(([type, { obfuscation: _padding, ...event }]): [string, JsonValue] => [
      type,
      'response' in event ? { ...event, response: onTheWire(event['response']) } : event,
    ]);
    expect(bare.length).toBeGreaterThan(12);
    expect(await faultsOf('ResponseStreamEvent', Object.fromEntries(bare))).toEqual([]);
  });

  test('is a response that matches the types', async () => {
    const bodies = envelopes.map((envelope, i): [string, JsonValue] => [
      `${i}`,
      onTheWire(sandboxWire.encodeBody(envelope)),
    ]);
    expect(await faultsOf('Response', Object.fromEntries(bodies))).toEqual([]);
  });

  /** The types lack `store`, which is on the wire, and have `output_text` and `access_programs`, which are not. */
  function onTheWire(response: JsonValue | undefined): JsonObject {
    const { usage, store: _recorded, ...rest } = response as JsonObject;
    return { ...rest, ...(usage === null ? {} : { usage }), output_text: '', access_programs: null };
  }
});
