import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { GatewayError } from '../../../src/errors.ts';
import { anthropicMessages } from '../../../src/providers/anthropic-messages/index.ts';
import { anthropicModelQuirks } from '../../../src/providers/anthropic-messages/model-quirks.ts';
import { type AttemptState, type EncodedRequest, UpstreamError } from '../../../src/providers/dialect.ts';
import { createFramer } from '../../../src/providers/transport/frames.ts';
import { accumulate } from '../../../src/schemas/accumulate.ts';
import type { ChatChunk, ChatRequest } from '../../../src/schemas/inner.ts';

/**
 * One file for each scenario, in four parts: the inner request (with the upstream's name of the model), the request
 * sent upstream, the upstream's answer, and its decoded content. Parts one and three are written by hand from the
 * provider's documentation; two and four are compared, and rewritten by `vitest -u`.
 */
const FOLDER = new URL('./', import.meta.url);
const MARK = /^=== (inner request for|upstream request|upstream answer|inner answer|inner chunks)(?: (.*))?$/m;

const scenarios = readdirSync(FOLDER).filter((name) => name.endsWith('.txt'));

test.each(scenarios)('%s', async (name) => {
  const path = fileURLToPath(new URL(name, FOLDER));
  const [, , model = '', requestText = '', ...parts] = readFileSync(path, 'utf8').split(MARK);
  const at = parts.indexOf('upstream answer');
  const status = Number.parseInt(parts[at + 1] ?? '', 10);
  const answer = parts[at + 2] ?? '';
  const request: ChatRequest = freeze(JSON.parse(requestText));

  const sections = [`=== inner request for ${model}\n${requestText.trim()}\n`];
  let encoded: EncodedRequest | undefined;
  try {
    encoded = anthropicMessages.encodeRequest(request, endpoint(model), { media: new Map(), strip_state: false });
    const head = `POST ${encoded.path}\n${lines(encoded.headers)}`;
    sections.push(`=== upstream request\n${head}\n\n${pretty(encoded.body)}\n${reportLines(encoded)}`);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    sections.push(`=== upstream request\nrefused with ${error.status}: ${error.message}\n`);
  }
  if (encoded !== undefined && answer !== '') {
    const state: AttemptState = { ...encoded.state, generation_id: 'gen-transcript' };
    sections.push(`=== upstream answer ${parts[at + 1]}\n${answer.trim()}\n`);
    sections.push(answerSection(status, parts[at + 1] ?? '', answer.trim(), state));
  }
  await expect(`${sections.join('\n')}`).toMatchFileSnapshot(path);
});

/** Encoding never changes its input. */
function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) for (const entry of Object.values(value)) freeze(entry);
  return Object.freeze(value);
}

function endpoint(model: string) {
  return {
    model: `anthropic/${model}`,
    provider: 'anthropic',
    upstream_model: model,
    max_completion_tokens: 64_000,
    context_length: 200_000,
    input_modalities: ['text', 'image', 'file'],
    quirks: anthropicModelQuirks(model),
  };
}

function answerSection(status: number, head: string, answer: string, state: AttemptState): string {
  if (status !== 200) {
    const headers = Object.fromEntries(
      [...head.matchAll(/([a-z-]+): ([^;]+)/g)].map(([, key, value]) => [key, value!.trim()]),
    );
    return `=== inner answer\n${summaryOf(anthropicMessages.decodeError(status, headers, answer))}\n`;
  }
  if (!head.includes('event-stream')) {
    return `=== inner answer\n${attempt(() => pretty(accumulate(anthropicMessages.decodeResponse(JSON.parse(answer), state), 1_760_000_000)))}\n`;
  }
  const chunks: ChatChunk[] = [];
  const failure = attempt(() => decode(`${answer}\n\n`, state, chunks));
  const shown = chunks.map((chunk) => JSON.stringify(chunk)).join('\n');
  if (failure === '') expect(accumulate(chunks, 0).choices[0].finish_reason).not.toBeNull();
  return `=== inner chunks\n${[shown, failure].filter(Boolean).join('\n')}\n`;
}

/** Seven bytes at a time, so that nothing can rely on the boundaries of reads. */
function decode(answer: string, state: AttemptState, chunks: ChatChunk[]): string {
  const framer = createFramer(anthropicMessages.frames);
  const decoder = anthropicMessages.createStreamDecoder(state);
  const bytes = new TextEncoder().encode(answer);
  for (let from = 0; from < bytes.length; from += 7) {
    for (const frame of framer.push(bytes.subarray(from, from + 7))) chunks.push(...decoder.push(frame));
  }
  for (const frame of framer.end()) chunks.push(...decoder.push(frame));
  chunks.push(...decoder.end());
  return '';
}

function attempt(run: () => string): string {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error;
    return summaryOf(error);
  }
}

function summaryOf(error: UpstreamError): string {
  const { failure, status, native_code, retry_after_ms, message } = error;
  return `failure ${JSON.stringify({ failure, status, native_code, retry_after_ms, message })}`;
}

function reportLines({ report }: EncodedRequest): string {
  return report.map(({ kind, field, reason }) => `${kind} ${field}: ${reason}\n`).join('');
}

function lines(headers: Record<string, string>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');
}

function pretty(value: unknown): string {
  return JSON.stringify(value, null, 1);
}
