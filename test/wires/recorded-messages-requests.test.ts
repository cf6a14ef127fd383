/**
 * A client of the Messages API loses nothing through the gateway to an upstream of the same wire: every recorded
 * request is unchanged after parser and dialect, except for the listed differences.
 */
import { Value } from 'typebox/value';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { messagesRequest } from '../../src/api/messages/parse-request.ts';
import { anthropicMessages } from '../../src/providers/anthropic-messages/index.ts';
import { hashUser } from '../../src/providers/shared/user-hash.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { MessagesBody } from '../../src/schemas/messages.ts';
import { array, atLeast, object, recordingsOf } from '../readings/recordings.ts';
import { type MessagesUpstream, startMessagesUpstream } from './messages-upstream.ts';

const recordings = recordingsOf('anthropic-messages').filter(({ recording }) => recording.request?.body);
const isThere = recordings.length > 0;
const NO_ENVELOPE = { wrap: () => undefined, unwrap: () => undefined };
const ENDPOINT = {
  model: 'anthropic/claude',
  provider: 'anthropic',
  upstream_model: 'claude',
  max_completion_tokens: undefined,
  context_length: undefined,
  input_modalities: ['text', 'image', 'file'],
  // An unknown model, which accepts the least.
  quirks: { thinking: 'none', no_sampling: true, no_prefill: true, no_forced_tool: true, json_schema_shim: true },
} as const;

describe.runIf(isThere)('a recorded request reaches an upstream of its wire unchanged', () => {
  test('all recordings are there', () => expect(recordings.length).toBeGreaterThanOrEqual(atLeast(40)));

  for (const { name, recording } of recordings) {
    test(name, () => {
      const body = recording.request!.body!;
      expect([...Value.Errors(MessagesBody, body)]).toEqual([]);
      const before = JSON.stringify(body);
      const request = messagesRequest(body as never, { envelope: NO_ENVELOPE, betas: [] });
      const encoded = anthropicMessages.encodeRequest(request, ENDPOINT, { media: new Map(), strip_state: false });
      expect(JSON.stringify(body)).toBe(before);
      expect(encoded.report).toEqual([]);
      expect(withoutNulls(encoded.body)).toEqual(allowed(body));
    });
  }
});

describe.runIf(isThere)('the same through a running gateway', () => {
  let site: MessagesUpstream;
  beforeAll(async () => {
    site = await startMessagesUpstream();
  });
  afterAll(() => site.stop());

  for (const { name, recording } of recordings) {
    test(name, async () => {
      const body = { ...recording.request!.body!, model: 'anthropic/claude' } as JsonObject;
      const response = await site.gateway.call('POST', '/messages', body);
      expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('Yes.')]);
      expect(withoutNulls(JSON.parse(site.last().body))).toEqual(allowed(body));
    });
  }
});

/** The body with every allowed difference: the model, the user's id, nulls, and a text instead of its block. */
function allowed(body: JsonObject): JsonObject {
  const fields = object(withoutNulls(body));
  fields['model'] = 'claude';
  const { user_id } = object(fields['metadata']);
  if (typeof user_id === 'string') fields['metadata'] = { user_id: hashUser(user_id) };
  fields['messages'] = array(fields['messages']).map((value) => {
    const message = object(value);
    const [block, ...others] = array(message['content']).map(object);
    const isText = block?.['type'] === 'text' && others.length === 0 && Object.keys(block).length === 2;
    return message['role'] === 'assistant' && isText ? { ...message, content: block['text']! } : message;
  });
  return fields;
}

function withoutNulls(value: JsonValue): JsonValue {
  return JSON.parse(JSON.stringify(value), (_key, entry) => (entry === null ? undefined : entry));
}
