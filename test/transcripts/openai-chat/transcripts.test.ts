/**
 * One file for each exchange, in parts: the client's request (and the endpoint's quirks, if they matter), the request
 * sent upstream, the upstream's answer, and the client's answer. The first and third are written by hand from the
 * providers' documentation; the others are compared, and rewritten by `vitest -u`.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type DialectEndpoint, UpstreamError } from '../../../src/providers/dialect.ts';
import { openaiChat } from '../../../src/providers/openai-chat/index.ts';
import { createFramer } from '../../../src/providers/transport/frames.ts';
import { accumulate } from '../../../src/schemas/accumulate.ts';
import type { ChatChunk, ChatRequest } from '../../../src/schemas/inner.ts';
import type { JsonObject } from '../../../src/schemas/json.ts';

const folder = new URL('./', import.meta.url);
const files = readdirSync(folder).filter((name) => name.endsWith('.txt'));

const PLAIN: DialectEndpoint = {
  model: 'acme/fast-1',
  provider: 'acme',
  upstream_model: 'fast-1-2026-01',
  max_completion_tokens: undefined,
  context_length: undefined,
  input_modalities: ['text', 'image'],
  quirks: {},
};

/** No decoder may rely on the boundaries of reads: seven bytes cut events, lines and characters. */
const READ_BYTES = 7;

function partsOf(text: string): Map<string, string> {
  const parts = new Map<string, string>();
  for (const section of text.split(/^=== /m).slice(1)) {
    const end = section.indexOf('\n');
    parts.set(section.slice(0, end), section.slice(end + 1).trim());
  }
  return parts;
}

const pretty = (value: unknown): string => JSON.stringify(value, null, 2);

function describeError(error: unknown): string {
  if (!(error instanceof UpstreamError)) throw error;
  const { failure, message, status, native_code, retry_after_ms } = error;
  return `UpstreamError ${pretty({ failure, message, status, native_code, retry_after_ms })}`;
}

function decodeStream(payload: string, state: JsonObject): string {
  const framer = createFramer(openaiChat.frames);
  const decoder = openaiChat.createStreamDecoder({ generation_id: 'gen-1', ...state });
  const chunks: ChatChunk[] = [];
  let outcome = '';
  try {
    const bytes = new TextEncoder().encode(payload);
    for (let at = 0; at < bytes.length; at += READ_BYTES) {
      for (const frame of framer.push(bytes.subarray(at, at + READ_BYTES))) chunks.push(...decoder.push(frame));
    }
    for (const frame of framer.end()) chunks.push(...decoder.push(frame));
    chunks.push(...decoder.end());
    outcome = pretty(accumulate(chunks, 1_700_000_000));
  } catch (error) {
    outcome = describeError(error);
  }
  return `${chunks.map((chunk) => JSON.stringify(chunk)).join('\n')}\n\n=== whole answer\n${outcome}`;
}

function decode(answer: string, state: JsonObject): string {
  const [head = '', ...lines] = answer.split('\n');
  const [status = '', type = ''] = head.split(' ');
  const blank = lines.indexOf('');
  const headers = Object.fromEntries(lines.slice(0, blank).map((line) => line.split(': ')));
  const payload = lines.slice(blank + 1).join('\n');
  if (Number(status) >= 400) {
    return `=== inner answer\n${describeError(openaiChat.decodeError(Number(status), headers, payload))}`;
  }
  if (type === 'text/event-stream') return `=== inner chunks\n${decodeStream(`${payload}\n\n`, { ...state, headers })}`;
  try {
    const decoded = accumulate(
      openaiChat.decodeResponse(JSON.parse(payload), { generation_id: 'gen-1', ...state }),
      1_700_000_000,
    );
    return `=== inner answer\n${pretty(decoded)}`;
  } catch (error) {
    return `=== inner answer\n${describeError(error)}`;
  }
}

test.each(files)('%s', async (name) => {
  const file = new URL(name, folder);
  const parts = partsOf(readFileSync(file, 'utf8'));
  const endpoint = parts.get('endpoint');
  const request = parts.get('inner request')!;
  const answer = parts.get('upstream answer')!;
  const encoded = openaiChat.encodeRequest(
    JSON.parse(request) as ChatRequest,
    { ...PLAIN, ...(endpoint === undefined ? {} : JSON.parse(endpoint)) },
    {
      media: new Map([['https://files.example/a.pdf', { mime_type: 'application/pdf', base64: 'JVBERg==' }]]),
      strip_state: false,
    },
  );
  const { method, path, body, report, state } = encoded;
  const text = [
    ...(endpoint === undefined ? [] : [`=== endpoint\n${endpoint}`]),
    `=== inner request\n${request}`,
    `=== upstream request\n${method} ${path}\n${pretty(body)}`,
    ...(report.length === 0 ? [] : [`=== report\n${pretty(report)}`]),
    ...(Object.keys(state).length === 0 ? [] : [`=== state\n${pretty(state)}`]),
    `=== upstream answer\n${answer}`,
    decode(answer, state as JsonObject),
  ].join('\n\n');
  await expect(`${text}\n`).toMatchFileSnapshot(file.pathname);
});

test('every listed scenario exists', () => {
  const scenarios = [
    'text stream tools parallel-tools image reasoning-content reasoning-field reasoning-details think-tags json-schema',
    'refusal rate-limit server-error html-error broken-stream no-done usage-on-every-chunk no-usage tool-call-bare',
    'azure-first-chunk error-in-stream mistral-parts groq-compound replay prefill',
  ]
    .join(' ')
    .split(' ');
  expect(scenarios.filter((name) => !files.includes(`${name}.txt`))).toEqual([]);
});
