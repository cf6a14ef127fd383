import { describe, expect, test } from 'vitest';
import { createVault } from '../../accounts/vault.ts';
import { chatClient } from '../../api/chat/client.ts';
import { completionsClient } from '../../api/completions/client.ts';
import { messagesClient } from '../../api/messages/client.ts';
import { responsesClient } from '../../api/responses/client.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { ChatChunk, ChatRequest, Message, ReasoningDetail, Wire } from '../../schemas/inner.ts';
import { type Call, CallCancellation } from '../call.ts';
import { createSealer, SEAL_UNPACKED_BYTES_MAX } from './seal.ts';
import { createTurnStates, issuerOf, SEALS_UNPACKED_BYTES_MAX, withOwnState } from './states.ts';
import { createTurnVault } from './vault.ts';

const SECRET = 'a secret of thirty-two characters';

function statesOf(secret = SECRET) {
  const vault = createTurnVault({
    secret,
    store: undefined,
    crypt: createVault(secret),
    nowMs: () => 0,
    keep_ms: 1_000,
    log: { warn: () => {} },
  });
  return createTurnStates({ sealer: createSealer(secret), vault, keeps: true });
}

function callOf(request: Partial<ChatRequest>, principal = { workspace_id: 'w', organization_id: 'o' }): Call {
  return {
    request: { messages: [], ext: { wire: 'openai-chat', client: chatClient, rest: {} }, ...request },
    generation_id: 'gen-1',
    principal,
    cancellation: new CallCancellation(),
  } as unknown as Call;
}

function at(slug: string, wire: Wire = 'anthropic-messages', own?: string): Candidate {
  return { endpoint: { quirks: {} }, provider: { slug, dialect: wire }, ...(own ? { own: { id: own } } : {}) } as never;
}

const thinking = (text: string, signature: string, index: number): ReasoningDetail => ({
  type: 'reasoning.text',
  text,
  signature,
  format: 'anthropic-claude-v1',
  id: null,
  index,
});
const search = {
  type: 'native' as const,
  wire: 'anthropic-messages' as const,
  block: { type: 'server_tool_use', id: 'x' },
};

/** A turn of two reasoning details with a search between them. */
const CHUNKS: ChatChunk[] = [
  { delta: { role: 'assistant' }, ext: { response: { wire: 'anthropic-messages' } } },
  { delta: { reasoning_details: [thinking('One', 'sig-1', 0)] }, ext: { slot: { n: 0, open: { kind: 'reasoning' } } } },
  { delta: {}, ext: { slot: { n: 1, open: { kind: 'native', native: search } } } },
  { delta: { reasoning_details: [thinking('Two', 'sig-2', 1)] }, ext: { slot: { n: 2, open: { kind: 'reasoning' } } } },
  { delta: { content: 'Text' }, ext: { slot: { n: 3, open: { kind: 'text' } } } },
  { delta: {}, finish_reason: 'stop', native_finish_reason: 'end_turn' },
];

const question: Message = { role: 'user', content: 'Q' };

function answered(states = statesOf(), call = callOf({ messages: [question] })) {
  const chunks = states.recorder(call, at('anthropic'), 'anthropic-messages')!.add(CHUNKS);
  const details = chunks.flatMap(({ delta }) => delta.reasoning_details ?? []);
  return { chunks, details, seal: details.find(({ id }) => id?.startsWith('seal_')) };
}

async function restore(
  states: ReturnType<typeof statesOf>,
  message: Message,
  principal?: { workspace_id: string; organization_id: string },
) {
  const messages = [question, message, { role: 'user' as const, content: 'More' }];
  return states.restore(callOf({ messages }, principal), () => true);
}

describe('the seal', () => {
  test('is the last detail, in a chunk of its own before the one that ends the answer', () => {
    const { chunks, details, seal } = answered();
    expect(seal).toMatchObject({ type: 'reasoning.encrypted', id: 'seal_gen-1', format: 'unknown', index: 2 });
    expect(details.at(-1)).toBe(seal);
    expect(chunks.at(-2)).toEqual({ delta: { reasoning_details: [seal] } });
    expect(chunks.at(-1)?.finish_reason).toBe('stop');
  });

  test.each<[string, Partial<ChatRequest>]>([
    ['requests no reasoning', { reasoning: { exclude: true } }],
    ['excludes reasoning from its answer', { include_reasoning: false }],
    ['does not send turns back', { ext: { wire: 'openai-chat', client: completionsClient, rest: {} } }],
    ['uses the API of the turn', { ext: { wire: 'anthropic-messages', client: messagesClient, rest: {} } }],
    ['disables it', { ext: { wire: 'openai-chat', client: chatClient, rest: {}, seals: 'off' } }],
  ])('is not sent to a client that %s', (_what, request) => {
    expect(answered(statesOf(), callOf({ messages: [question], ...request })).seal).toBeUndefined();
  });

  test('is sent to clients of other APIs for turns of foreign wires', () => {
    const ext = { wire: 'openai-responses', client: responsesClient, rest: {} } as const;
    expect(answered(statesOf(), callOf({ messages: [question], ext })).seal).toBeDefined();
  });

  test('is sent under zero data retention too, since nothing is stored', () => {
    expect(answered(statesOf(), callOf({ messages: [question], provider: { zdr: true } })).seal).toBeDefined();
  });

  test('is not made for an answer that breaks off', () => {
    const states = statesOf();
    const chunks: ChatChunk[] = [...CHUNKS.slice(0, -1), { delta: {}, finish_reason: 'error' }];
    expect(states.recorder(callOf({}), at('anthropic'), 'anthropic-messages')!.add(chunks)).toEqual(chunks);
  });

  test('is not made if the turn has only text and calls, nor on a wire without state', () => {
    const states = statesOf();
    const plain = [CHUNKS[0]!, CHUNKS[1]!, CHUNKS[4]!, CHUNKS[5]!];
    expect(states.recorder(callOf({}), at('anthropic'), 'anthropic-messages')!.add(plain)).toEqual(plain);
    expect(states.recorder(callOf({}), at('openai', 'openai-chat'), 'openai-chat')).toBeUndefined();
  });

  test('restores two reasoning details that a client merged, with both signatures', async () => {
    const states = statesOf();
    const { seal } = answered(states);
    const merged: Message = {
      role: 'assistant',
      content: 'Text',
      reasoning_details: [thinking('OneTwo', 'sig-1', 0), seal!],
    };
    const { call, issuer } = await restore(states, merged);
    expect(issuer).toBe('anthropic');
    expect(call.request.messages[1]).toMatchObject({
      content: 'Text',
      reasoning_details: [thinking('One', 'sig-1', 0), thinking('Two', 'sig-2', 1)],
      ext: {
        issuer: 'anthropic',
        natives: [search],
        order: [
          { kind: 'reasoning', at: 0 },
          { kind: 'native', at: 0 },
          { kind: 'reasoning', at: 1 },
          { kind: 'text', at: 0 },
        ],
      },
    });
  });

  test('is recognized without its id and format, which some clients drop', async () => {
    const states = statesOf();
    const { details } = answered(states);
    const dropped = details.map(({ id: _, format: __, index: ___, ...one }) => one);
    const { call } = await restore(states, { role: 'assistant', content: 'Text', reasoning_details: dropped });
    expect(call.request.messages[1]?.ext?.natives).toEqual([search]);
    expect(JSON.stringify(call.request)).not.toContain('gw1.');
  });

  test.each<[string, (details: ReasoningDetail[]) => Partial<Message>]>([
    ['its text was edited', (details) => ({ content: 'Text, and more', reasoning_details: details })],
    ['it belongs to another turn', (details) => ({ content: 'Other', reasoning_details: details })],
    [
      'it was changed',
      (details) => ({
        content: 'Text',
        reasoning_details: details.map((one) =>
          'data' in one ? { ...one, data: one.data.replace(/^gw1\.../, 'gw1.AA') } : one,
        ),
      }),
    ],
  ])('is removed, and nothing is restored, if %s', async (_what, change) => {
    const states = statesOf();
    const { details } = answered(states);
    const { call } = await restore(states, { role: 'assistant', ...change(details) });
    const [, message] = call.request.messages;
    expect(message?.ext?.order).toBeUndefined();
    expect(message?.reasoning_details).toEqual(details.slice(0, 2));
  });

  test('of another organization or another gateway is not accepted', async () => {
    const states = statesOf();
    const { details } = answered(states);
    const turn: Message = { role: 'assistant', content: 'Text', reasoning_details: details };
    for (const { call } of [
      await restore(states, turn, { workspace_id: 'w', organization_id: 'another' }),
      await restore(statesOf('another secret of 32 characters!'), turn),
    ]) {
      expect(call.request.messages[1]?.ext?.natives).toBeUndefined();
      expect(call.request.messages[1]?.reasoning_details).toEqual(details.slice(0, 2));
    }
  });

  test('is unpacked up to a bounded number of bytes a request, the newest first', async () => {
    const states = statesOf();
    const block = { type: 'x', text: 'a'.repeat(SEAL_UNPACKED_BYTES_MAX - 1_000) };
    const turn = { w: 'anthropic-messages' as const, i: 'anthropic', t: [], c: [4], d: [] };
    const { detail } = createSealer(SECRET).seal(
      { ...turn, n: [{ type: 'native', wire: 'anthropic-messages', block }], o: [{ kind: 'native', at: 0 }] },
      { organization_id: 'o', generation_id: 'gen-1' },
    )!;
    const many = 300;
    const messages = Array.from({ length: many }, (): Message[] => [
      question,
      { role: 'assistant', content: 'Text', reasoning_details: [detail] },
    ]).flat();
    const { call } = await states.restore(callOf({ messages }), () => true);
    const whole = call.request.messages.filter(({ ext }) => ext?.natives !== undefined);
    expect(whole.length).toBeLessThanOrEqual(SEALS_UNPACKED_BYTES_MAX / SEAL_UNPACKED_BYTES_MAX + 3);
    expect(whole.length).toBeGreaterThan(200);
    expect(call.request.messages.at(-1)?.ext?.natives).toBeDefined();
    expect(JSON.stringify(call.request)).not.toContain('gw1.');
  });

  test('restores the order without the reasoning if a client removed the reasoning', async () => {
    const states = statesOf();
    const { seal } = answered(states);
    const { call } = await restore(states, { role: 'assistant', content: 'Text', reasoning_details: [seal!] });
    expect(call.request.messages[1]).toMatchObject({
      reasoning_details: [],
      ext: {
        order: [
          { kind: 'native', at: 0 },
          { kind: 'text', at: 0 },
        ],
        natives: [search],
      },
    });
  });
});

describe('state of another account', () => {
  const bound = (data: string, index: number): ReasoningDetail => ({
    type: 'reasoning.encrypted',
    data,
    format: 'openai-responses-v1',
    id: `rs_${index}`,
    index,
  });
  const turn: Message = {
    role: 'assistant',
    content: 'Text',
    reasoning_details: [
      { type: 'reasoning.summary', summary: 'So', format: 'openai-responses-v1', index: 0 },
      bound('xyz', 1),
      thinking('T', 's', 2),
    ],
    ext: {
      wire: 'openai-responses',
      rest: {},
      issuer: 'openai',
      order: [
        { kind: 'reasoning', at: 0, span: 2 },
        { kind: 'text', at: 0 },
        { kind: 'reasoning', at: 2 },
      ],
    },
  };
  const request: ChatRequest = { messages: [question, turn] };

  test('is removed and reported, except signatures that are valid on every platform', () => {
    const { request: fit, report } = withOwnState(request, at('azure', 'openai-responses'));
    expect(fit.messages[1]?.reasoning_details).toEqual([turn.reasoning_details![0], turn.reasoning_details![2]]);
    expect(fit.messages[1]?.ext?.order).toEqual([
      { kind: 'reasoning', at: 0 },
      { kind: 'text', at: 0 },
      { kind: 'reasoning', at: 1 },
    ]);
    expect(report).toEqual([
      { kind: 'dropped', field: 'messages[1].reasoning_details', reason: expect.stringMatching(/another account/) },
    ]);
    expect(turn.reasoning_details).toHaveLength(3);
  });

  test("stays for the account that made it, and an organization's own account is another", () => {
    expect(withOwnState(request, at('openai', 'openai-responses'))).toEqual({ request, report: [] });
    expect(withOwnState(request, at('openai', 'openai-responses', 'key-1')).report).toHaveLength(1);
    expect(issuerOf(at('openai', 'openai-responses', 'key-1'))).not.toBe('openai');
  });

  test('is recognized by its content, also for a turn without calls and seal', async () => {
    const states = statesOf();
    const chunks: ChatChunk[] = [
      { delta: { reasoning_details: [bound('opaque', 0)] }, ext: { slot: { n: 0, open: { kind: 'reasoning' } } } },
      { delta: { content: 'Text' }, ext: { slot: { n: 1, open: { kind: 'text' } } } },
      { delta: {}, finish_reason: 'stop' },
    ];
    const recorder = states.recorder(
      callOf({ messages: [question] }),
      at('azure', 'openai-responses'),
      'openai-responses',
    )!;
    expect(recorder.add(chunks)).toEqual(chunks);
    const turn: Message = { role: 'assistant', content: 'Text', reasoning_details: [bound('opaque', 0)] };
    expect((await restore(states, turn)).issuer).toBe('azure');
    expect((await restore(states, { ...turn, reasoning_details: [bound('unknown', 0)] })).issuer).toBeUndefined();
  });
});

describe('a turn that a client sends without its reasoning', () => {
  const called = { id: 'toolu_01AbCdEfGh12', type: 'function' as const, function: { name: 'f', arguments: '{}' } };
  const chunks: ChatChunk[] = [
    {
      delta: { reasoning_details: [thinking('One', 'sig-1', 0)] },
      ext: { slot: { n: 0, open: { kind: 'reasoning' } } },
    },
    { delta: { tool_calls: [{ index: 0, ...called }] }, ext: { slot: { n: 1, open: { kind: 'call' } } } },
    { delta: {}, finish_reason: 'tool_calls' },
  ];
  const turn: Message = { role: 'assistant', content: null, tool_calls: [called] };
  const ext = { wire: 'anthropic-messages', client: messagesClient, rest: {} } as const;

  async function restored(fields: Partial<ChatRequest>, before: Message[] = []) {
    const states = statesOf();
    states.recorder(callOf({ messages: [question], ...fields }), at('anthropic'), 'anthropic-messages')!.add(chunks);
    const messages = [question, ...before, turn, question];
    const { call } = await states.restore(callOf({ messages, ...fields }), () => true);
    return call.request.messages.at(-2)?.reasoning_details;
  }

  test('gets it back', async () => {
    expect(await restored({})).toEqual([thinking('One', 'sig-1', 0)]);
  });

  test('is unchanged if the client speaks the wire of the turn, unless it did not see the reasoning', async () => {
    expect(await restored({ ext })).toBeUndefined();
    expect(await restored({ ext, reasoning: { exclude: true } })).toEqual([thinking('One', 'sig-1', 0)]);
  });

  test('is unchanged if the message before it has the reasoning: some clients send a message for each block', async () => {
    const beside: Message = { role: 'assistant', content: null, reasoning_details: [thinking('One', 'sig-1', 0)] };
    const answer: Message = { role: 'assistant', content: 'Text' };
    expect(await restored({}, [beside, answer])).toBeUndefined();
    expect(await restored({}, [beside, question])).toEqual([thinking('One', 'sig-1', 0)]);
  });
});

test('a request without state is passed on unchanged', async () => {
  const states = statesOf();
  const call = callOf({ messages: [question, { role: 'assistant', content: 'Hi' }, question] });
  // The endpoint is not looked up either.
  const never = () => {
    throw new Error('asked');
  };
  expect(states.restore(call, never)).toEqual({ call, report: [], issuer: undefined });
  expect((await states.restore(call, never)).call).toBe(call);
});
