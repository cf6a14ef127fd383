/**
 * A secret that a guardrail forbids reaches no provider from any place of a request: each value, key and number of each
 * field, item, block and tool in the lists of `fields/` is the secret once, and the request passes its parser, the
 * filters and the encoders of all wires.
 */

import type { TObject } from 'typebox';
import { Value } from 'typebox/value';
import { describe, expect, test } from 'vitest';
import { type ChatBody, chatRequest } from '../../src/api/chat/parse-request.ts';
import { type MessagesRequestBody, messagesRequest } from '../../src/api/messages/parse-request.ts';
import { type ResponsesRequestBody, responsesRequest } from '../../src/api/responses/parse-request.ts';
import { GatewayError } from '../../src/errors.ts';
import { filterSetOf } from '../../src/guardrails/policy/filter-set.ts';
import { UNRESTRICTED } from '../../src/guardrails/policy/guardrail.ts';
import { createNumbering } from '../../src/guardrails/redaction.ts';
import { requestTexts } from '../../src/guardrails/requests/request-texts.ts';
import { screen } from '../../src/guardrails/requests/screen.ts';
import { createEnvelopes } from '../../src/inference/reasoning/envelope.ts';
import { anthropicModelQuirks } from '../../src/providers/anthropic-messages/model-quirks.ts';
import type { DialectEndpoint } from '../../src/providers/dialect.ts';
import { dialects } from '../../src/providers/dialects.ts';
import type { Quirks } from '../../src/providers/quirks.ts';
import { ChatCompletionBody } from '../../src/schemas/chat.ts';
import type { BoundGuardrail } from '../../src/schemas/guardrail.ts';
import type { ChatRequest, Wire } from '../../src/schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { MessagesBody } from '../../src/schemas/messages.ts';
import { ResponsesBody } from '../../src/schemas/responses.ts';
import { chatAdditions, chatFields } from '../fields/chat.ts';
import { messagesAdditions, messagesBlocks, messagesFields, messagesTools } from '../fields/messages.ts';
import { responsesAdditions, responsesFields, responsesItems, responsesTools } from '../fields/responses.ts';
import type { KindRow, RequestRow } from '../fields/row.ts';
import { inTier } from '../tier.ts';

const envelope = createEnvelopes('secret')('org');
const wires: Wire[] = inTier(['openai-chat', 'anthropic-messages'], [...dialects.keys()]);

const guardrail: BoundGuardrail = {
  id: 'g',
  scope: 'api-key',
  ...UNRESTRICTED,
  content_filter_builtins: [
    { slug: 'email', action: 'redact' },
    { slug: 'credit-card', action: 'redact' },
  ],
  content_filters: [{ pattern: 'CANARY[0-9]{6}', action: 'redact' }],
  content_filter_output: null,
  content_filter_reversible: null,
};
const guardrails = [guardrail];
const set = filterSetOf(guardrails)!;

const screened = (request: ChatRequest) =>
  screen((visit) => requestTexts(request, { visit, keeps_signatures: false }), {
    set,
    guardrails,
    numbering: createNumbering(),
    pause: async () => {},
  });

const QUIRKS: Partial<Record<Wire, Quirks>> = { 'anthropic-messages': anthropicModelQuirks('claude-opus-4-5') };

/** Everything that would be sent, on each wire that accepts the request. */
function sentBy(wire: Wire, request: ChatRequest): string | undefined {
  const endpoint: DialectEndpoint = {
    model: 'a/b',
    provider: 'p',
    upstream_model: 'the-model',
    max_completion_tokens: 32_000,
    context_length: undefined,
    input_modalities: ['text', 'image', 'file', 'audio', 'video'],
    quirks: QUIRKS[wire] ?? {},
  };
  try {
    const { body, path, headers } = dialects
      .get(wire)!
      .encodeRequest(request, endpoint, { media: new Map(), strip_state: false });
    return JSON.stringify([path, headers, body]);
  } catch (error) {
    if (error instanceof GatewayError) return undefined;
    throw error;
  }
}

const SECRETS = {
  text: 'jane.canary@example.com',
  word: 'CANARY123456',
  number: 4_111_111_111_111_111,
} as const;

/** The value with one of its leaves changed, once for each leaf: strings replaced and lengthened, keys, numbers. */
function* planted(value: JsonValue, path: string): Generator<{ at: string; value: JsonValue }> {
  if (typeof value === 'string') {
    yield { at: `${path} (address)`, value: SECRETS.text };
    yield { at: `${path} (word)`, value: SECRETS.word };
    yield { at: `${path} (lengthened)`, value: `${value} ${SECRETS.text}` };
    return;
  }
  if (typeof value === 'number') yield { at: `${path} (number)`, value: SECRETS.number };
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (const [at, entry] of value.entries()) {
      for (const inside of planted(entry, `${path}[${at}]`))
        yield { at: inside.at, value: value.with(at, inside.value) };
    }
    return;
  }
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue;
    for (const inside of planted(member, `${path}.${key}`))
      yield { at: inside.at, value: { ...value, [key]: inside.value } };
  }
  yield { at: `${path} (key)`, value: { ...value, [SECRETS.text]: 'x' } };
  if (isFree(path)) yield { at: `${path} (key of the client's)`, value: { ...value, [SECRETS.word]: 'x' } };
}

/** Objects whose keys clients choose. Elsewhere a key that looks like a secret is a field of a wire. */
const isFree = (path: string) => /arguments|\.input$|\.input\.|\.metadata$|\.properties$|input_examples/.test(path);

interface Api {
  schema: TObject;
  parseRequest(body: JsonObject): ChatRequest;
  bodies: [string, JsonObject][];
}

const QUESTION = { role: 'user', content: 'Q' };
const NEXT = { role: 'user', content: 'And?' };

function fieldBodies(least: JsonObject, rows: Record<string, RequestRow>): [string, JsonObject][] {
  const taken = Object.entries(rows).filter(([, { goes }]) => goes !== 'back');
  return taken.map(([field, row]) => [field, { ...least, ...row.with, [field]: row.value } as unknown as JsonObject]);
}

const CHAT = { model: 'a/b', messages: [{ role: 'user', content: 'Q' }] };
const RESPONSES = { model: 'a/b', input: 'Q' };
const MESSAGES = { model: 'a/b', max_tokens: 100, messages: [{ role: 'user', content: 'Q' }] };

/** Every kind of message and part in chat. */
const conversation: JsonObject[] = [
  { role: 'system', content: 'Be brief.', name: 'operator' },
  { role: 'developer', content: [{ type: 'text', text: 'Be kind.' }] },
  {
    role: 'user',
    name: 'jane',
    content: [
      { type: 'text', text: 'Look', cache_control: { type: 'ephemeral' } },
      { type: 'image_url', image_url: { url: 'https://a.example/x.png', detail: 'high' } },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
      { type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA', filename: 'x.pdf' } },
      { type: 'file', file: { file_id: 'file_1' } },
      { type: 'file', file: { file_data: 'data:text/plain,Hello', filename: 'x.txt' } },
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
      { type: 'video_url', video_url: { url: 'https://a.example/x.mp4' } },
    ],
  },
  {
    role: 'assistant',
    content: 'Let me see.',
    refusal: 'No.',
    reasoning: 'Hm.',
    reasoning_details: [
      { type: 'reasoning.text', text: 'Hm.', signature: 'c2ln', format: 'anthropic-claude-v1', id: 'r', index: 0 },
      { type: 'reasoning.summary', summary: 'Thought.', index: 1 },
      { type: 'reasoning.encrypted', data: 'ZGF0YQ==', id: 'rs_1', index: 2 },
    ],
    images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }],
    audio: { id: 'audio_1', transcript: 'Said.' },
    annotations: [
      {
        type: 'url_citation',
        url_citation: { url: 'https://a.example', title: 't', content: 'c', start_index: 0, end_index: 1 },
      },
    ],
    tool_calls: [
      { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":{"b":["c",1]}}' } },
      { id: 'call_2', type: 'custom', custom: { name: 'g', input: 'Input' } },
    ],
  } as unknown as JsonObject,
  { role: 'tool', tool_call_id: 'call_1', content: '{"found":["x"]}', name: 'f' },
  { role: 'tool', tool_call_id: 'call_2', content: [{ type: 'text', text: 'Result' }] },
  { role: 'assistant', content: [{ type: 'text', text: 'So.' }], function_call: { name: 'f', arguments: '{"a":1}' } },
  { role: 'function', name: 'f', content: 'Result' },
  { role: 'user', content: 'And?' },
];

const kindBodies = (rows: Record<string, KindRow>, body: (row: KindRow) => JsonObject): [string, JsonObject][] =>
  Object.entries(rows)
    .filter(([, row]) => row.refused === undefined)
    .map(([kind, row]) => [kind, body(row)]);

const apis: Record<string, Api> = {
  'chat completions': {
    schema: ChatCompletionBody,
    parseRequest: (body) => chatRequest(body as unknown as ChatBody),
    bodies: [
      ...fieldBodies(CHAT, { ...chatFields, ...chatAdditions }),
      ['a conversation', { model: 'a/b', messages: conversation }],
    ],
  },
  'the Responses API': {
    schema: ResponsesBody,
    parseRequest: (body) => responsesRequest(body as unknown as ResponsesRequestBody, { envelope }),
    bodies: [
      ...fieldBodies(RESPONSES, { ...responsesFields, ...responsesAdditions }),
      ...kindBodies(responsesItems, ({ before = [], value, after = [] }) => ({
        model: 'a/b',
        input: [QUESTION, ...before, value, ...after, NEXT],
      })),
      ...kindBodies(responsesTools, ({ value }) => ({ ...RESPONSES, tools: [value] })),
    ],
  },
  'the Messages API': {
    schema: MessagesBody,
    parseRequest: (body) => messagesRequest(body as unknown as MessagesRequestBody, { envelope, betas: [] }),
    bodies: [
      ...fieldBodies(MESSAGES, { ...messagesFields, ...messagesAdditions }),
      ...kindBodies(messagesBlocks, ({ role = 'user', before, value, after = [] }) => ({
        model: 'a/b',
        max_tokens: 8000,
        messages: [
          ...(before === undefined ? [QUESTION] : [QUESTION, { role: 'assistant', content: before }]),
          { role, content: [value, ...after] },
          ...(role === 'user' ? [{ role: 'assistant', content: 'A' }] : []),
          NEXT,
        ],
      })),
      ...kindBodies(messagesTools, ({ value }) => ({ ...MESSAGES, tools: [value] })),
    ],
  },
};

/** Numbers are filtered only where clients choose the content, as in arguments. Elsewhere they are settings. */
const isSetting = (at: string) => at.endsWith('(number)') && !/arguments|\.input\.|\.input\b.*\.a|metadata/.test(at);

const leaks = (text: string) =>
  text.includes(SECRETS.text) || text.includes(SECRETS.word) || text.includes(String(SECRETS.number));

describe.each(Object.entries(apis))('of %s', (_name, { schema, parseRequest, bodies }) => {
  test.each(bodies)('%s', async (_field, body) => {
    let sent = 0;
    const leaked: string[] = [];
    for (const { at, value } of planted(body, '')) {
      if (isSetting(at)) continue;
      const body = value as JsonObject;
      if (Value.Errors(schema, body).length > 0) continue;
      let request: ChatRequest;
      try {
        request = parseRequest(body);
      } catch (error) {
        if (error instanceof GatewayError) continue;
        throw error;
      }
      const { subject, refusal } = await screened(request);
      if (refusal !== undefined) continue;
      for (const wire of wires) {
        const text = sentBy(wire, subject);
        if (text === undefined) continue;
        sent += 1;
        if (leaks(text)) leaked.push(`${at} at ${wire}`);
      }
    }
    expect(leaked).toEqual([]);
    expect(sent).toBeGreaterThan(0);
  });
});
