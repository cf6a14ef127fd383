/**
 * The destination of every field of the client APIs. The compiler ensures that the lists in `fields/` have exactly the
 * names of the official types; here each row is tested: a request with the field passes the parser and the encoders of
 * its own wire and of another.
 */
import type { TObject } from 'typebox';
import { Value } from 'typebox/value';
import { describe, expect, test } from 'vitest';
import { type ChatBody, chatRequest } from '../../src/api/chat/parse-request.ts';
import { type MessagesRequestBody, messagesRequest } from '../../src/api/messages/parse-request.ts';
import { type ResponsesRequestBody, responsesRequest } from '../../src/api/responses/parse-request.ts';
import { leftOut } from '../../src/inference/prepare/left-out.ts';
import { createEnvelopes } from '../../src/inference/reasoning/envelope.ts';
import { anthropicModelQuirks } from '../../src/providers/anthropic-messages/model-quirks.ts';
import type { DialectEndpoint, EncodedRequest } from '../../src/providers/dialect.ts';
import { dialects } from '../../src/providers/dialects.ts';
import type { Quirks } from '../../src/providers/quirks.ts';
import { ChatCompletionBody } from '../../src/schemas/chat.ts';
import type { ChatRequest, Wire } from '../../src/schemas/inner.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { MessagesBody } from '../../src/schemas/messages.ts';
import { ResponsesBody } from '../../src/schemas/responses.ts';
import { chatAdditions, chatFields } from '../fields/chat.ts';
import { messagesAdditions, messagesBlocks, messagesFields, messagesTools } from '../fields/messages.ts';
import { responsesAdditions, responsesFields, responsesItems, responsesTools } from '../fields/responses.ts';
import type { KindRow, Place, RequestRow } from '../fields/row.ts';

const envelope = createEnvelopes('secret')('org');

interface Api {
  rows: Record<string, RequestRow>;
  additions: Record<string, RequestRow>;
  schema: TObject;
  parse(body: JsonObject): ChatRequest;
  own: Wire;
  other: Wire;
  /** The smallest request. */
  least: JsonObject;
}

const apis: Record<string, Api> = {
  chat: {
    rows: chatFields,
    additions: chatAdditions,
    schema: ChatCompletionBody,
    parse: (body) => chatRequest(body as unknown as ChatBody),
    own: 'openai-chat',
    other: 'anthropic-messages',
    least: { model: 'a/b', messages: [{ role: 'user', content: 'Q' }] },
  },
  responses: {
    rows: responsesFields,
    additions: responsesAdditions,
    schema: ResponsesBody,
    parse: (body) => responsesRequest(body as unknown as ResponsesRequestBody, { envelope }),
    own: 'openai-responses',
    other: 'openai-chat',
    least: { model: 'a/b', input: 'Q' },
  },
  messages: {
    rows: messagesFields,
    additions: messagesAdditions,
    schema: MessagesBody,
    parse: (body) => messagesRequest(body as unknown as MessagesRequestBody, { envelope, betas: [] }),
    own: 'anthropic-messages',
    other: 'openai-chat',
    least: { model: 'a/b', max_tokens: 100, messages: [{ role: 'user', content: 'Q' }] },
  },
};

/** Endpoints that accept everything that their wires have. */
const QUIRKS: Partial<Record<Wire, Quirks>> = { 'anthropic-messages': anthropicModelQuirks('claude-opus-4-5') };

function encoded(wire: Wire, request: ChatRequest): EncodedRequest {
  const endpoint: DialectEndpoint = {
    model: 'a/b',
    provider: 'p',
    upstream_model: 'the-model',
    max_completion_tokens: 32_000,
    context_length: undefined,
    input_modalities: ['text', 'image', 'file'],
    quirks: QUIRKS[wire] ?? {},
  };
  return dialects.get(wire)!.encodeRequest(request, endpoint, { media: new Map(), strip_state: false });
}

/** The value at a path such as `a.b[0].c`; undefined if there is none. */
function at(value: unknown, path: string): unknown {
  const steps = path.split(/[.[\]]+/).filter((step) => step !== '');
  return steps.reduce((inner, step) => (inner as Record<string, unknown> | undefined)?.[step], value);
}

describe.each(Object.entries(apis))('of the %s API', (_name, api) => {
  const { rows, additions, schema, parse, own, least } = api;
  const all: [string, RequestRow][] = [...Object.entries(rows), ...Object.entries(additions)];

  test('every field of its schema is listed', () => {
    const listed = new Set(all.map(([field]) => field));
    expect(Object.keys(schema.properties).filter((field) => !listed.has(field))).toEqual([]);
  });

  test.each(all)('%s is sent where the list says', (field, row) => {
    const plain = { ...least, ...row.with };
    const other = row.of ?? api.other;
    const body = { ...plain, [field]: row.value };
    const faults = Value.Errors(schema, body).map(({ instancePath }) => instancePath.split('/')[1]);
    if (row.goes === 'back') {
      if (faults.length > 0) expect(new Set(faults)).toEqual(new Set([field]));
      else expect(() => parse(body)).toThrow(row.says);
      return;
    }
    expect(faults).toEqual([]);
    const request = parse(body);
    const [there, elsewhere] = [encoded(own, request), encoded(other, request)];
    const isThere = ([path, value]: Place) => expect(at(there.body, path), `${path} of ${own}`).toEqual(value);
    const isElsewhere = ([path, value]: Place) =>
      expect(at(elsewhere.body, path), `${path} of ${other}`).toEqual(value);
    const isNotThere = () => expect(there.body).toEqual(encoded(own, parse(plain)).body);
    const isNotElsewhere = () => expect(elsewhere.body).toEqual(encoded(other, parse(plain)).body);
    switch (row.goes) {
      case 'on':
        isThere(row.own ?? [field, row.value]);
        isElsewhere(row.other);
        break;
      case 'to its own wire':
        isThere(row.own ?? [field, row.value]);
        isNotElsewhere();
        if (row.means_nothing !== true)
          expect([...elsewhere.report, ...leftOut(request, other)].map((report) => report.field)).toContain(field);
        break;
      case 'nowhere':
        isNotThere();
        isNotElsewhere();
        expect(there.report.map(({ field: reportedField }) => reportedField)).toContain(field);
        break;
      case 'to other wires':
        isNotThere();
        isElsewhere(row.other);
        break;
      case 'to the gateway':
        isNotThere();
        isNotElsewhere();
        if (row.inner !== undefined) expect(at(request, row.inner[0])).toEqual(row.inner[1]);
    }
  });
});

/** A conversation that contains one item or block. */
interface Kinds {
  api: Api;
  rows: Record<string, KindRow>;
  /** The request with some of them. */
  body(row: KindRow, values: readonly JsonObject[]): JsonObject;
  /** Their place in the body of their own wire. */
  sent(body: JsonObject): unknown[];
}

const QUESTION = { role: 'user', content: 'Q' };
const NEXT = { role: 'user', content: 'And?' };

const kinds: Record<string, Kinds> = {
  'items of the Responses API': {
    api: apis['responses']!,
    rows: responsesItems,
    body: ({ before = [], after = [] }, values) => ({
      model: 'a/b',
      input: [QUESTION, ...before, ...values, ...after, NEXT],
    }),
    sent: (body) => body['input'] as unknown[],
  },
  'tools of the Responses API': {
    api: apis['responses']!,
    rows: responsesTools,
    body: (_row, tools) => ({ model: 'a/b', input: 'Q', tools: [...tools] }),
    sent: (body) => body['tools'] as unknown[],
  },
  'blocks of the Messages API': {
    api: apis['messages']!,
    rows: messagesBlocks,
    body({ role = 'user', before, after = [] }, values) {
      const answer = { role: 'assistant', content: 'A' };
      const first = before === undefined ? QUESTION : { role: 'assistant', content: before };
      return {
        model: 'a/b',
        max_tokens: 8000,
        messages: [
          ...(before === undefined ? [] : [QUESTION]),
          first,
          ...(values.length + after.length === 0 ? [] : [{ role, content: [...values, ...after] }]),
          ...(role === 'user' ? [answer] : []),
          NEXT,
        ],
      };
    },
    sent: (body) => (body['messages'] as { content: unknown[] }[]).flatMap(({ content }) => content),
  },
  'tools of the Messages API': {
    api: apis['messages']!,
    rows: messagesTools,
    body: (_row, tools) => ({ ...apis['messages']!.least, tools: [...tools] }),
    sent: (body) => body['tools'] as unknown[],
  },
};

/** A field is removed as a whole, and reported. */
function isLeftOut(encoded: EncodedRequest, without: EncodedRequest): void {
  expect(encoded.body).toEqual(without.body);
  expect(encoded.report.length).toBeGreaterThan(without.report.length);
}

describe.each(Object.entries(kinds))('of the %s', (_name, { api, rows, body, sent }) => {
  test.each(Object.entries(rows))('%s is sent where the list says', (_kind, row) => {
    const present = body(row, [row.value]);
    if (row.refused !== undefined) {
      expect(() => api.parse(present)).toThrow(row.refused);
      return;
    }
    expect(Value.Errors(api.schema, present)).toEqual([]);
    const request = api.parse(present);
    const without = api.parse(body(row, []));
    const [there, elsewhere] = [encoded(api.own, request), encoded(api.other, request)];
    if (row.own === null) isLeftOut(there, encoded(api.own, without));
    else expect(sent(there.body)).toContainEqual(row.own ?? row.value);
    if (row.other === null) isLeftOut(elsewhere, encoded(api.other, without));
    else expect(JSON.stringify(elsewhere.body)).toContain(row.other);
  });
});
