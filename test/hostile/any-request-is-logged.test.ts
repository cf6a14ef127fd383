/**
 * No request that a client API accepts, and no answer that a decoder makes, excludes its call from the log, the record
 * or the filters.
 */
import fc from 'fast-check';
import { Compile } from 'typebox/compile';
import { describe, expect, test } from 'vitest';
import { type ChatBody, chatRequest } from '../../src/api/chat/parse-request.ts';
import { embeddingRequest } from '../../src/api/embeddings/parse-request.ts';
import { messagesRequest } from '../../src/api/messages/parse-request.ts';
import { responsesRequest } from '../../src/api/responses/parse-request.ts';
import { GatewayError } from '../../src/errors.ts';
import { filterSetOf } from '../../src/guardrails/policy/filter-set.ts';
import { UNRESTRICTED } from '../../src/guardrails/policy/guardrail.ts';
import { createNumbering } from '../../src/guardrails/redaction.ts';
import { requestTexts } from '../../src/guardrails/requests/request-texts.ts';
import { screen } from '../../src/guardrails/requests/screen.ts';
import type { Call } from '../../src/inference/call.ts';
import { contentOf, OutputText } from '../../src/inference/observe/content.ts';
import { generationSpans } from '../../src/inference/observe/generation-spans.ts';
import { createEnvelopes } from '../../src/inference/reasoning/envelope.ts';
import { ChatCompletionBody } from '../../src/schemas/chat.ts';
import { contentsOf } from '../../src/schemas/contents.ts';
import { EmbeddingsBody } from '../../src/schemas/embeddings.ts';
import type { BoundGuardrail } from '../../src/schemas/guardrail.ts';
import type { ChatRequest } from '../../src/schemas/inner.ts';
import { MessagesBody } from '../../src/schemas/messages.ts';
import { ResponsesBody } from '../../src/schemas/responses.ts';
import { spanJson } from '../../src/telemetry/otlp.ts';
import { generation } from '../generation-fixture.ts';
import { inTier } from '../tier.ts';
import { anyOf } from './any-of-schema.ts';

const RUNS = Number(process.env['HOSTILE_RUNS'] ?? inTier(150, 300));
const envelope = createEnvelopes('secret')('org');
const guardrails: BoundGuardrail[] = [
  {
    id: 'g',
    scope: 'api-key',
    ...UNRESTRICTED,
    content_filter_builtins: [{ slug: 'email', action: 'redact' }],
    content_filters: null,
    content_filter_output: null,
    content_filter_reversible: null,
  },
];
const set = filterSetOf(guardrails)!;

const apis = {
  chat: { schema: ChatCompletionBody, read: (body: unknown) => chatRequest(body as ChatBody) },
  messages: {
    schema: MessagesBody,
    read: (body: unknown) => messagesRequest(body as never, { envelope, betas: [] }),
  },
  responses: { schema: ResponsesBody, read: (body: unknown) => responsesRequest(body as never, { envelope }) },
  embeddings: {
    schema: EmbeddingsBody,
    read: (body: unknown) => embeddingRequest(body as never).routed as ChatRequest,
  },
};

/** The checks for every request that its client API accepted. */
async function logged(request: ChatRequest): Promise<void> {
  contentsOf(request);
  const content = contentOf(request, new OutputText(), undefined);
  expect(JSON.parse(JSON.stringify(content))).toBeTypeOf('object');
  const call = {
    request,
    principal: { logging: { workspace_slug: 'w' } },
    attribution: {},
    generation_id: 'gen-1',
    accepted_ms: 1,
    stages: [],
  } as unknown as Call;
  const ended = { call, record: generation({ id: 'gen-1' }), duration_ms: 1, content };
  for (const span of generationSpans(ended, { content: true })) JSON.parse(spanJson(span));
  await screen((visit) => requestTexts(request, { visit, keeps_signatures: false }), {
    set,
    guardrails,
    numbering: createNumbering(),
    pause: async () => {},
  });
}

describe.each(Object.entries(apis))('any request of %s', (_api, { schema, read }) => {
  test('can be filtered, recorded, kept and broadcast', async () => {
    const check = Compile(schema);
    let readCount = 0;
    await fc.assert(
      fc.asyncProperty(anyOf(schema as never), async (body) => {
        const copy = structuredClone(body);
        fc.pre(check.Check(copy));
        let request: ChatRequest;
        try {
          request = read(copy);
        } catch (error) {
          if (error instanceof GatewayError) return;
          throw error;
        }
        readCount += 1;
        await logged(request);
      }),
      { numRuns: RUNS, maxSkipsPerRun: 1_000 },
    );
    expect(readCount).toBeGreaterThan(inTier(0, RUNS / 60));
  });
});

test('an assistant message of the history with any field null is kept', async () => {
  const fields = ['reasoning_details', 'reasoning', 'tool_calls', 'images', 'audio', 'annotations', 'refusal', 'name'];
  for (const field of [...fields, 'content', 'cache_control', 'function_call', 'reasoning_content']) {
    const messages = [
      { role: 'assistant', content: 'x', [field]: null },
      { role: 'user', content: 'so' },
    ];
    const request = chatRequest({ messages } as ChatBody);
    await logged(request);
    expect(contentOf(request, new OutputText(), undefined).request.messages).toHaveLength(2);
  }
});

const oddValue = fc.oneof(
  fc.constantFrom(null, undefined, 0, '', [], {}, [null], 'x', { url: 5 }, [{ function: null }], [{ image_url: 'x' }]),
  fc.jsonValue({ maxDepth: 3 }),
);
const oddDelta = fc.dictionary(
  fc.constantFrom(
    ...['role', 'content', 'refusal', 'reasoning', 'reasoning_details', 'tool_calls', 'images', 'audio', 'annotations'],
  ),
  oddValue,
);

test('an answer with any fields from a provider has log content that is JSON', () => {
  fc.assert(
    fc.property(fc.array(oddDelta, { maxLength: 4 }), oddDelta, oddValue, (deltas, message, error) => {
      for (const read of [
        (output: OutputText) => output.chunks(deltas.map((delta) => ({ delta })) as never),
        (output: OutputText) =>
          output.whole({ choices: [{ index: 0, message, finish_reason: 'stop', error }] } as never),
        (output: OutputText) => output.task(message),
      ]) {
        const output = new OutputText();
        try {
          read(output);
        } catch {
          // A stub replaces it: see the tests of the request log.
        }
        const content = contentOf({ messages: [] }, output, undefined);
        expect(JSON.parse(JSON.stringify(content))).toBeTypeOf('object');
      }
    }),
    { numRuns: RUNS },
  );
});
