import { describe, expect, test } from 'vitest';
import { accumulate } from '../../schemas/accumulate.ts';
import type { ChatChunk, ChatCompletion } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { type AttemptState, UpstreamError } from '../dialect.ts';
import { geminiGenerateContent } from './index.ts';

const STATE: AttemptState = { generation_id: 'gen-1' };

function event(parts: JsonValue[], more: JsonObject = {}, beside: JsonObject = {}): JsonObject {
  return { candidates: [{ content: { parts, role: 'model' }, ...more }], responseId: 'r1', ...beside };
}

function chunksOf(events: JsonValue[], state: object = {}): ChatChunk[] {
  const decoder = geminiGenerateContent.createStreamDecoder({ ...STATE, ...state });
  const chunks = events.flatMap((one) => decoder.push({ event: undefined, data: JSON.stringify(one) }));
  return [...chunks, ...decoder.end()];
}

function decode(events: JsonValue[], state: object = {}): ChatCompletion {
  return accumulate(chunksOf(events, state), 0);
}

/** The parts that are sent back for this answer. */
function replayed(completion: ChatCompletion, upstreamModel = 'gemini-3-flash'): JsonValue {
  const { message } = completion.choices[0];
  const endpoint = {
    model: 'google/gemini',
    provider: 'google',
    upstream_model: upstreamModel,
    max_completion_tokens: undefined,
    context_length: undefined,
    input_modalities: ['text'],
    quirks: {},
  };
  const request = { messages: [{ role: 'user' as const, content: 'Hi' }, message] };
  const { body } = geminiGenerateContent.encodeRequest(request, endpoint, { media: new Map(), strip_state: false });
  return ((body['contents'] as JsonObject[])[1] as JsonObject)['parts']!;
}

const stop = { finishReason: 'STOP' };

describe('text and thoughts', () => {
  test('are kept unchanged and sent back with their signatures', () => {
    const completion = decode([
      event([{ text: 'They ask', thought: true }]),
      event([{ text: ' why.', thought: true }]),
      event([{ text: 'Be' }]),
      event([{ text: 'cause.', thoughtSignature: 'c2lnMQ==' }], stop),
    ]);
    const [{ message }] = completion.choices;
    expect(message.content).toBe('Because.');
    expect(message.reasoning).toBe('They ask why.');
    expect(message.reasoning_details).toEqual([
      { type: 'reasoning.text', text: 'They ask why.', format: 'google-gemini-v1', id: null, index: 0 },
      { type: 'reasoning.text', signature: 'c2lnMQ==', format: 'google-gemini-v1', id: null, index: 1 },
    ]);
    expect(replayed(completion)).toEqual([{ text: 'Because.', thoughtSignature: 'c2lnMQ==' }]);
  });

  test('a signature in a last part without text is sent back in an empty part', () => {
    const parts = [{ text: 'Yes.' }, { text: '', thoughtSignature: 'c2ln' }];
    const completion = decode([event([parts[0]!]), event([parts[1]!], stop)]);
    expect(completion.choices[0].message.reasoning_details).toHaveLength(1);
    expect(replayed(completion)).toEqual(parts);
  });

  test('the signature is restored to its text if a client keeps only the details', () => {
    const completion = decode([event([{ text: 'Yes.', thoughtSignature: 'c2ln' }], stop)]);
    const { ext: _, ...message } = completion.choices[0].message;
    const plain = { ...completion, choices: [{ ...completion.choices[0], message }] } as ChatCompletion;
    expect(replayed(plain)).toEqual([{ text: 'Yes.', thoughtSignature: 'c2ln' }]);
  });

  test('several texts around Google objects are sent back in order', () => {
    const parts = [
      { text: 'I run it.' },
      { executableCode: { language: 'PYTHON', code: '1+1' }, thoughtSignature: 'Y29kZQ==' },
      { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '2' } },
      { text: 'It is 2.', thoughtSignature: 'dGV4dA==' },
    ];
    const completion = decode([event(parts, stop)]);
    expect(completion.choices[0].message.content).toEqual([
      { type: 'text', text: 'I run it.' },
      { type: 'text', text: 'It is 2.' },
    ]);
    expect(replayed(completion)).toEqual(parts);
  });
});

describe('calls', () => {
  const call = (name: string, more: JsonObject = {}) => ({ functionCall: { name, ...more } });

  test('of one set, with one signature and no ids, are separated', () => {
    const parts = [
      { ...call('look', { args: { at: 1 } }), thoughtSignature: 'c2ln' },
      call('look', { args: { at: 2 } }),
      call('look'),
    ];
    const completion = decode([event(parts, stop)]);
    const [{ message, finish_reason: finishReason }] = completion.choices;
    const ids = message.tool_calls!.map(({ id }) => id);
    expect(finishReason).toBe('tool_calls');
    expect(new Set(ids).size).toBe(3);
    expect(ids.every((id) => /^call_[0-9A-Za-z]{24}$/.test(id))).toBe(true);
    expect(message.tool_calls!.map((one) => one.function.arguments)).toEqual(['{"at":1}', '{"at":2}', '{}']);
    expect(message.reasoning_details).toEqual([
      { type: 'reasoning.encrypted', data: 'c2ln', format: 'google-gemini-v1', id: ids[0], index: 0 },
    ]);
    expect(replayed(completion)).toMatchObject([{ thoughtSignature: 'c2ln' }, {}, {}]);
    expect(JSON.stringify(replayed(completion)).match(/thoughtSignature/g)).toHaveLength(1);
  });

  test('keep the upstream’s id unless the conversation already has it', () => {
    const { choices } = decode([event([call('a', { id: 'x1' }), call('b', { id: 'x2' })], stop)], { call_ids: ['x2'] });
    expect(choices[0].message.tool_calls!.map(({ id }) => id)).toEqual(['x1', expect.stringMatching(/^call_/)]);
  });

  test('have the client’s tool names', () => {
    const { choices } = decode([event([call('a_b_123456')], stop)], { tool_names: { a_b_123456: 'a b' } });
    expect(choices[0].message.tool_calls![0]!.function.name).toBe('a b');
  });

  test('of undeclared tools are an error and are not shown', () => {
    const ending = { finishReason: 'UNEXPECTED_TOOL_CALL', finishMessage: 'Unexpected tool call: list_files' };
    const [choice] = decode([event([call('list_files')], ending)]).choices;
    expect(choice.message.tool_calls).toBeUndefined();
    expect([choice.finish_reason, choice.native_finish_reason]).toEqual(['error', 'UNEXPECTED_TOOL_CALL']);
    expect(choice.error).toEqual({ code: 502, message: 'Unexpected tool call: list_files' });
  });

  test('with arguments in partial values are assembled, also for unusual member names', () => {
    const piece = (jsonPath: string, value: JsonObject, goesOn = true) => ({
      functionCall: { partialArgs: [{ jsonPath, ...value }], ...(goesOn ? { willContinue: true } : {}) },
    });
    const { choices } = decode([
      event([call('write', { willContinue: true })]),
      event([piece('$.list[1].name', { stringValue: 'b', willContinue: true })]),
      event([piece('$.list[1].name', { stringValue: 'c' })]),
      event([piece("$['a b'].__proto__", { numberValue: 0.5 })]),
      event([piece('$.yes', { boolValue: true })]),
      event([piece('$.none', { nullValue: 'NULL_VALUE' }, false)]),
      event([{ text: '' }], stop),
    ]);
    expect(choices[0].message.tool_calls![0]!.function.arguments).toBe(
      '{"list":[null,{"name":"bc"}],"a b":{"__proto__":0.5},"yes":true,"none":null}',
    );
  });

  test.each([
    [{ functionCall: { partialArgs: [{ jsonPath: '$.a', stringValue: 'x' }] } }],
    [{ functionCall: { name: 'a', partialArgs: [{ jsonPath: 'a..b', stringValue: 'x' }] } }],
    [{ functionCall: { name: 'a', partialArgs: [{ jsonPath: '$.a[999999999]', numberValue: 1 }] } }],
  ])('with invalid partial arguments are refused: %j', (part) => {
    expect(() => decode([event([part], stop)])).toThrow(UpstreamError);
  });

  test('of the function that replaces JSON output become text', () => {
    const [choice] = decode([event([call('json_response', { args: { a: 1 } })], stop)], {
      shim: 'json_response',
    }).choices;
    expect([choice.message.content, choice.message.tool_calls, choice.finish_reason]).toEqual([
      '{"a":1}',
      undefined,
      'stop',
    ]);
  });
});

describe('finish reasons', () => {
  test.each([
    ['MAX_TOKENS', 'length'],
    ['SAFETY', 'content_filter'],
    ['RECITATION', 'content_filter'],
    ['MODEL_ARMOR', 'content_filter'],
    ['IMAGE_SAFETY', 'content_filter'],
    ['MALFORMED_FUNCTION_CALL', 'error'],
    ['OTHER', 'error'],
  ])('%s without content is %s', (finishReason, finish) => {
    const [choice] = decode([{ candidates: [{ finishReason }], usageMetadata: { totalTokenCount: 3 } }]).choices;
    expect([choice.finish_reason, choice.native_finish_reason, choice.message.content]).toEqual([
      finish,
      finishReason,
      null,
    ]);
  });

  test('an unknown reason is a stop if there is content', () => {
    expect(decode([event([{ text: 'a' }], { finishReason: 'NEW' })]).choices[0].finish_reason).toBe('stop');
  });

  test('a refused prompt is a content filter, with its message', () => {
    const promptFeedback = { blockReason: 'PROHIBITED_CONTENT', blockReasonMessage: 'No.' };
    const [choice] = decode([{ promptFeedback, usageMetadata: { promptTokenCount: 3, totalTokenCount: 3 } }]).choices;
    expect(choice).toMatchObject({
      finish_reason: 'content_filter',
      native_finish_reason: 'PROHIBITED_CONTENT',
      error: { code: 403, metadata: { raw: 'No.' } },
    });
  });

  test('an answer that is blocked in its middle ends as content filter, and the text before stays', () => {
    const blocked = { promptFeedback: { blockReason: 'MODEL_ARMOR', blockReasonMessage: 'No.' } };
    const [choice] = decode([event([{ text: 'a' }]), blocked]).choices;
    expect([choice.message.content, choice.finish_reason, choice.native_finish_reason]).toEqual([
      'a',
      'content_filter',
      'MODEL_ARMOR',
    ]);
  });

  test('a whole body without one is complete, and an error if it is empty', () => {
    const read = (body: JsonValue) => accumulate(geminiGenerateContent.decodeResponse(body, STATE), 0).choices[0];
    expect(read(event([{ text: 'a' }]))).toMatchObject({ finish_reason: 'stop', native_finish_reason: null });
    const called = read(event([{ functionCall: { name: 'f', args: {} } }]));
    expect(called).toMatchObject({ finish_reason: 'tool_calls', native_finish_reason: null });
    expect(read(event([]))).toMatchObject({ finish_reason: 'error', native_finish_reason: null });
    expect(() => read([event([{ text: 'a' }])])).toThrow(expect.objectContaining({ failure: 'unavailable' }));
  });

  test('an event of another kind is skipped within an answer and refused alone', () => {
    const strange = { serverContent: { turnComplete: true } };
    expect(decode([event([{ text: 'a' }]), {}, strange, event([{ text: 'b' }], stop)]).choices[0].message.content).toBe(
      'ab',
    );
    expect(() => decode([strange])).toThrow(expect.objectContaining({ failure: 'invalid_response' }));
  });

  test('a stream without one is incomplete', () => {
    expect(() => decode([event([{ text: 'a' }])])).toThrow(expect.objectContaining({ failure: 'unavailable' }));
    expect(() => decode([])).toThrow(expect.objectContaining({ failure: 'invalid_response' }));
  });

  test('an error after the first event is thrown, alone or in a list', () => {
    const error = { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } };
    for (const late of [error, [error]]) {
      expect(() => decode([event([{ text: 'a' }]), late])).toThrow(
        expect.objectContaining({ failure: 'overloaded', status: 503, native_code: 'UNAVAILABLE' }),
      );
    }
  });

  test('the answer is complete with its finish reason, and later usage is still read', () => {
    const decoder = geminiGenerateContent.createStreamDecoder(STATE);
    const push = (one: JsonValue) => decoder.push({ event: undefined, data: JSON.stringify(one) });
    const chunks = push(event([{ text: 'a' }]));
    expect(decoder.isWhole()).toBe(false);
    chunks.push(...push(event([], stop)));
    expect(decoder.isWhole()).toBe(true);
    chunks.push(...push({ usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 2, totalTokenCount: 3 } }));
    expect(accumulate([...chunks, ...decoder.end()], 0).ext.usage).toMatchObject({ in_uncached: 1, out_text: 2 });
  });
});

describe('usage', () => {
  const used = (usageMetadata: JsonObject) => decode([event([{ text: 'a' }], stop, { usageMetadata })]).ext.usage;
  const of = (modality: string, tokenCount: number) => ({ modality, tokenCount });

  test('is split by cache and modality, and reasoning is separate from text', () => {
    expect(
      used({
        promptTokenCount: 100,
        toolUsePromptTokenCount: 20,
        cachedContentTokenCount: 30,
        candidatesTokenCount: 50,
        thoughtsTokenCount: 7,
        totalTokenCount: 177,
        promptTokensDetails: [of('TEXT', 40), of('AUDIO', 30), of('IMAGE', 20), of('VIDEO', 10)],
        cacheTokensDetails: [of('AUDIO', 12), of('TEXT', 18)],
        candidatesTokensDetails: [of('TEXT', 10), of('IMAGE', 40)],
      }),
    ).toEqual({
      in_cache_read: 30,
      in_audio: 18,
      in_image: 20,
      in_uncached: 52,
      out_image: 40,
      out_text: 10,
      out_reasoning: 7,
    });
  });

  test('fields that protocol buffers omit are derived from the total', () => {
    expect(used({ promptTokenCount: 5, totalTokenCount: 9 })).toEqual({
      in_cache_read: 0,
      in_uncached: 5,
      out_text: 4,
      out_reasoning: 0,
    });
    expect(used({ candidatesTokenCount: 4, totalTokenCount: 9 })).toMatchObject({ in_uncached: 5, out_text: 4 });
    expect(used({ trafficType: 'ON_DEMAND' })).toBeUndefined();
    expect(used({ promptTokenCount: 5 })).toEqual({ in_cache_read: 0, in_uncached: 5 });
  });

  test('is never negative', () => {
    const classes = used({
      promptTokenCount: 5,
      cachedContentTokenCount: 9,
      candidatesTokenCount: 1,
      totalTokenCount: 2,
      candidatesTokensDetails: [of('AUDIO', 5)],
    });
    expect(classes).toEqual({ in_cache_read: 5, in_uncached: 0, out_audio: 1, out_text: 0, out_reasoning: 0 });
  });

  const steps = [
    { promptTokenCount: 10, candidatesTokenCount: 5, thoughtsTokenCount: 100, totalTokenCount: 115 },
    { promptTokenCount: 10, candidatesTokenCount: 8, thoughtsTokenCount: 100, totalTokenCount: 118 },
    { promptTokenCount: 50, candidatesTokenCount: 2, thoughtsTokenCount: 20, totalTokenCount: 72 },
    { promptTokenCount: 60, candidatesTokenCount: 1, thoughtsTokenCount: 3, totalTokenCount: 64 },
  ];
  const running = steps.map((usageMetadata) => event([{ text: 'a' }], {}, { usageMetadata }));

  test('that restarts with each step is the usage of the last event', () => {
    const last = { promptTokenCount: 60, candidatesTokenCount: 12, thoughtsTokenCount: 120, totalTokenCount: 192 };
    const { usage } = decode([...running, event([], stop, { usageMetadata: last })]).ext;
    expect(usage).toMatchObject({ in_uncached: 60, out_text: 12, out_reasoning: 120 });
  });

  test('of a stream that breaks off is the sum of its steps', () => {
    const decoder = geminiGenerateContent.createStreamDecoder(STATE);
    const chunks = running.flatMap((one) => decoder.push({ event: undefined, data: JSON.stringify(one) }));
    expect(chunks.findLast(({ ext }) => ext?.response?.usage !== undefined)?.ext?.response?.usage).toMatchObject({
      in_uncached: 120,
      out_text: 11,
      out_reasoning: 123,
    });
  });

  test('contains the service tier', () => {
    const tier = (usageMetadata: JsonObject) => decode([event([{ text: 'a' }], stop, { usageMetadata })]).service_tier;
    expect(tier({ totalTokenCount: 1, serviceTier: 'standard' })).toBe('default');
    expect(tier({ totalTokenCount: 1, serviceTier: 'priority' })).toBe('priority');
    expect(tier({ totalTokenCount: 1, trafficType: 'ON_DEMAND' })).toBe('default');
    expect(tier({ totalTokenCount: 1, trafficType: 'ON_DEMAND_FLEX' })).toBe('flex');
    expect(tier({ totalTokenCount: 1 })).toBeUndefined();
  });
});

describe('grounding', () => {
  const chunks = [{ web: { uri: 'https://a.example/', title: 'A' } }, { retrievedContext: { text: 'x' } }];
  const cited = (text: string, segment: JsonObject) => {
    const groundingMetadata = {
      groundingChunks: chunks,
      groundingSupports: [{ segment, groundingChunkIndices: [0, 1] }],
      webSearchQueries: ['one', 'two', 'two'],
    };
    return decode([event([{ text }], { ...stop, groundingMetadata })], { generation: 3 });
  };
  const place = (text: string, segment: JsonObject) =>
    cited(text, segment).choices[0].message.annotations!.map((one) => {
      const { start_index: startIndex, end_index: endIndex } = (
        one as { url_citation: { start_index: number; end_index: number } }
      ).url_citation;
      return [startIndex, endIndex];
    });

  test('is cited with offsets in the text, counted in code points', () => {
    const text = 'Žluť 🌍 is round. So it is.';
    const bytes = Buffer.from('Žluť 🌍 is round.').length;
    expect(place(text, { endIndex: bytes, text: 'Žluť 🌍 is round.' })).toEqual([[0, 16]]);
    expect(place(text, { startIndex: bytes + 1, endIndex: bytes + 10, text: 'So it is.' })).toEqual([[17, 26]]);
  });

  test('is searched near its stated offset, and has no offsets if it is missing', () => {
    const text = 'Žluť is yellow. So it is.';
    expect(place(text, { startIndex: 20, endIndex: 29, text: 'So it is.' })).toEqual([[16, 25]]);
    expect(place(text, { startIndex: 20, endIndex: 29, text: 'Not there' })).toEqual([[0, 0]]);
    expect(place(text, { startIndex: 5000, endIndex: 5009 })).toEqual([[0, 0]]);
  });

  test('is emitted with or after its text, before the signature that ends the text', () => {
    const groundingMetadata = {
      groundingChunks: chunks,
      groundingSupports: [{ segment: { endIndex: 3, text: 'So.' }, groundingChunkIndices: [0] }],
    };
    const last = { ...stop, groundingMetadata };
    for (const events of [
      [event([{ text: 'So.' }]), event([{ text: '', thoughtSignature: 'c2ln' }], last)],
      [event([{ text: 'So.', thoughtSignature: 'c2ln' }], last)],
      [event([{ text: 'So.', thoughtSignature: 'c2ln' }]), event([{ text: '' }], last)],
    ]) {
      const kinds = chunksOf(events, {}).flatMap(({ delta }) =>
        (['content', 'annotations', 'reasoning_details'] as const).filter((name) => delta[name] !== undefined),
      );
      expect(kinds).toEqual(['content', 'annotations', 'reasoning_details']);
    }
  });

  test('keeps its offsets if later events repeat less, and counts the searches of all events', () => {
    const full = {
      groundingChunks: [{ web: { uri: 'https://a.example/' } }],
      groundingSupports: [{ segment: { endIndex: 1, text: 'a' }, groundingChunkIndices: [0] }],
      webSearchQueries: ['one'],
    };
    const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
    const searches = (metadata: JsonObject) => ({ candidates: [{ groundingMetadata: metadata }] });
    for (const later of [{}, { webSearchQueries: ['two'] }, { groundingChunks: [], webSearchQueries: ['two'] }]) {
      const answer = decode(
        [event([{ text: 'a' }], { groundingMetadata: full }), searches(later), event([], stop, { usageMetadata })],
        { generation: 3 },
      );
      expect(answer.choices[0].message.annotations).toMatchObject([{ url_citation: { url: 'https://a.example/' } }]);
      expect(answer.ext.usage?.counts).toEqual({ web_search: 'webSearchQueries' in later ? 2 : 1 });
    }
  });

  test('counts searches as they are billed: each query on new models, one on older ones', () => {
    const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
    const groundingMetadata = { webSearchQueries: ['one', 'two', 'two'] };
    const searches = (generation: number) =>
      decode([event([{ text: 'a' }], { ...stop, groundingMetadata }, { usageMetadata })], { generation }).ext.usage
        ?.counts;
    expect([searches(3), searches(2.5)]).toEqual([{ web_search: 2 }, { web_search: 1 }]);
  });
});

describe('other kinds of output', () => {
  test('an image is shown and sent back with its signature; an image of the reasoning is not shown', () => {
    const blob = { inlineData: { mimeType: 'image/png', data: 'aW1n' }, thoughtSignature: 'c2ln' };
    const draft = { inlineData: { mimeType: 'image/png', data: 'ZHJhZnQ=' }, thought: true };
    const completion = decode([event([draft, { text: 'Here:' }, blob], stop)]);
    expect(completion.choices[0].message.images).toEqual([
      { type: 'image_url', image_url: { url: 'data:image/png;base64,aW1n' } },
    ]);
    expect(replayed(completion)).toEqual([draft, { text: 'Here:' }, blob]);
  });

  test('audio in pieces is joined to one piece', () => {
    const bytes = Buffer.from('twelve bytes and some more');
    const pieces = [0, 4, 8, 15, 26].map((at, i, all) => bytes.subarray(at, all[i + 1]).toString('base64'));
    const sound = (data: string) => ({ inlineData: { mimeType: 'audio/L16;codec=pcm;rate=24000', data } });
    const completion = decode([...pieces.slice(0, 4).map((data) => event([sound(data)])), event([], stop)]);
    expect(Buffer.from(completion.choices[0].message.audio!.data!, 'base64').toString()).toBe(bytes.toString());
  });

  test('token probabilities have their public names', () => {
    const logprobsResult = {
      chosenCandidates: [{ token: 'Hé', logProbability: -0.1 }],
      topCandidates: [
        {
          candidates: [
            { token: 'Hé', logProbability: -0.1 },
            { token: 'A', logProbability: -2 },
          ],
        },
      ],
    };
    const { logprobs } = decode([event([{ text: 'Hé' }], { ...stop, logprobsResult })]).choices[0];
    const one = { token: 'Hé', logprob: -0.1, bytes: [72, 195, 169] };
    expect(logprobs).toEqual({ content: [{ ...one, top_logprobs: [one, { token: 'A', logprob: -2, bytes: [65] }] }] });
    const textChunk = chunksOf([event([{ text: 'Hé' }], { ...stop, logprobsResult })]).find(
      ({ delta }) => delta.content,
    );
    expect(textChunk!.logprobs).toEqual(logprobs);
  });

  test('additional candidates are ignored', () => {
    const other = { candidates: [{ index: 1, content: { parts: [{ text: 'B' }] }, finishReason: 'STOP' }] };
    expect(decode([event([{ text: 'A' }]), other, event([], stop)]).choices[0].message.content).toBe('A');
  });
});
