/**
 * The gateway's requests to Google and the sandbox's answers, checked by the compiler against the types of Google's own
 * client: the objects are written as literals, so that a name that the types lack is an error.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { answerTo } from '../../sandbox/answer.ts';
import { readFaults } from '../../sandbox/faults.ts';
import { geminiGenerateContent as sandboxWire } from '../../sandbox/gemini-generate-content.ts';
import { signatureOf } from '../../sandbox/gemini-generate-content-checks.ts';
import { GatewayError } from '../../src/errors.ts';
import { geminiGenerateContent } from '../../src/providers/gemini-generate-content/index.ts';
import type { ChatRequest } from '../../src/schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { twentyMedia, twentyRequests } from '../twenty-requests.ts';

const compiler = new URL('../../node_modules/.bin/tsc', import.meta.url).pathname;
const types = new URL('../../node_modules/@google/genai/dist/genai.js', import.meta.url).pathname;

/** The client's own types, with enumerations by their values as on the wire. A body is composed of them. */
const PRELUDE = `import type * as official from '${types}';
type Plain<T> = T extends string ? \`\${T}\` : T extends (infer E)[] ? Plain<E>[] : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
interface Request {
  contents: Plain<official.Content>[];
  systemInstruction?: Plain<official.Content>;
  tools?: Plain<official.Tool>[];
  toolConfig?: Plain<official.ToolConfig>;
  generationConfig?: Plain<official.GenerationConfig>;
  labels?: Record<string, string>;
  serviceTier?: Plain<official.ServiceTier>;
}
type Response = Plain<Pick<official.GenerateContentResponse, 'candidates' | 'usageMetadata' | 'modelVersion' | 'responseId'>>;`;
const PRELUDE_LINES = PRELUDE.split('\n').length;

/** The compiler's messages for values as literals of a type; empty if they match. */
async function faultsOf(type: 'Request' | 'Response', values: Record<string, JsonValue>): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'official-'));
  try {
    const constants = Object.entries(values).map(
      ([name, value], i) => `/* ${name} */ export const a${i}: ${type} = ${JSON.stringify(value)};`,
    );
    const file = join(folder, 'literals.ts');
    await writeFile(file, [PRELUDE, ...constants].join('\n'));
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

const models = ['gemini-3-flash', 'gemini-2.5-pro', 'gemini-2.0-flash'];

function encode(request: ChatRequest, upstreamModel: string, googleCloud = false): JsonObject {
  const endpoint = {
    model: 'google/gemini',
    provider: 'google',
    upstream_model: upstreamModel,
    max_completion_tokens: 8_000,
    context_length: 1_000_000,
    input_modalities: ['text', 'image', 'file', 'audio', 'video'],
    quirks: { google_cloud: googleCloud },
  };
  return geminiGenerateContent.encodeRequest(request, endpoint, { media: twentyMedia, strip_state: false }).body;
}

test('the types reject invalid bodies', async () => {
  const contents = [{ role: 'user', parts: [{ text: 'Hello' }] }];
  const faults = await faultsOf('Request', {
    right: { contents },
    'a name of another wire': { contents, max_tokens: 20 },
    'a part of another wire': { contents: [{ role: 'user', parts: [{ type: 'text', text: 'Hello' }] }] },
    'a value that there is not': { contents, toolConfig: { functionCallingConfig: { mode: 'REQUIRED' } } },
    'a setting that there is not': { contents, generationConfig: { max_output_tokens: 3 } },
  });
  const lines = new Set(faults.flatMap((fault) => /literals\.ts\((\d+),/.exec(fault)?.[1] ?? []));
  expect([...lines].map((line) => Number(line) - PRELUDE_LINES)).toEqual([2, 3, 4, 5]);
});

describe.each(models)('the twenty requests, to %s', (model) => {
  const requests = Object.entries(twentyRequests);

  test('match the types, on AI Studio and Vertex AI', async () => {
    const bodies = requests.flatMap(([name, request]) => [
      [name, encode(request, model)],
      [`${name}, on Vertex AI`, encode(request, model, true)],
    ]);
    expect(await faultsOf('Request', Object.fromEntries(bodies))).toEqual([]);
  });
});

describe('the sandbox accepts, as a model of the third generation', () => {
  const args = { city: 'Oslo' };
  const signature = JSON.stringify(signatureOf({ functionCall: { name: 'get_weather', args } }));
  test.each(Object.entries(twentyRequests))('%s', (_name, request) => {
    const text = JSON.stringify(encode(request, 'gemini-3-flash')).replaceAll('"b3BhcXVl"', signature);
    expect(() => sandboxWire.check(JSON.parse(text), {})).not.toThrow();
  });
});

test('the encoder refuses an address that was not fetched', () => {
  const request = twentyRequests['images by data URL and by address']!;
  const endpoint = {
    model: 'm',
    provider: 'p',
    upstream_model: 'gemini-3-flash',
    max_completion_tokens: 1,
    context_length: 1,
    input_modalities: [],
    quirks: {},
  };
  expect(geminiGenerateContent.requiredMedia(request, endpoint)).toHaveLength(1);
  expect(() =>
    geminiGenerateContent.encodeRequest(request, endpoint, { media: new Map(), strip_state: false }),
  ).toThrow(GatewayError);
});

test('the sandbox’s answers, streamed and whole, match the types', async () => {
  const body: JsonObject = {
    model: 'm',
    contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
    tools: [
      { functionDeclarations: [{ name: 'get_weather', parametersJsonSchema: { type: 'object', properties: {} } }] },
    ],
    generationConfig: { thinkingConfig: { includeThoughts: true } },
  };
  const answers = (['echo', 'tools', 'think', 'refuse'] as const).flatMap((behaviour) => {
    const prompt = sandboxWire.readPrompt(body);
    const faults = readFaults({}, {}, {});
    const cache = { read_tokens: 3, write_5m_tokens: 0, write_1h_tokens: 0 };
    const envelope = { answer: answerTo(prompt, behaviour, faults), prompt, cache, faults, id: 'a', created: 0, body };
    const events = [...sandboxWire.encodeStream(envelope)].map(
      (event) => JSON.parse(String(event).replace(/^data: /, '')) as JsonObject,
    );
    return [...events, sandboxWire.encodeBody(envelope)];
  });
  expect(answers.length).toBeGreaterThan(10);
  // Members of the real wire that the client's types lack.
  const known = answers.map(({ usageMetadata, ...answer }, i): [string, JsonValue] => {
    const { serviceTier: _, ...usage } = usageMetadata as JsonObject;
    return [String(i), { ...answer, usageMetadata: usage }];
  });
  expect(await faultsOf('Response', Object.fromEntries(known))).toEqual([]);
});
