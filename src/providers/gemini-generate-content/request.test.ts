import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../errors.ts';
import type { ChatRequest, FunctionTool, InnerPart, Message, ReasoningDetail } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { EncodeOptions } from '../dialect.ts';
import type { Quirks } from '../quirks.ts';
import { geminiGenerateContent } from './index.ts';

const BYPASS = 'c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=';

interface Where extends Partial<EncodeOptions> {
  model?: string;
  quirks?: Quirks;
  most?: number;
}

function encode(
  request: Partial<ChatRequest>,
  { model = 'gemini-3-flash', quirks = {}, most, ...options }: Where = {},
) {
  const endpoint = {
    model: 'google/gemini',
    provider: 'google',
    upstream_model: model,
    max_completion_tokens: most,
    context_length: undefined,
    input_modalities: ['text'],
    quirks,
  };
  const chatRequest = { messages: [user('Hi')], ...request };
  return geminiGenerateContent.encodeRequest(chatRequest, endpoint, {
    media: new Map(),
    strip_state: false,
    ...options,
  });
}
const config = (request: Partial<ChatRequest>, where?: Where) =>
  (encode(request, where).body['generationConfig'] ?? {}) as JsonObject;
const contents = (messages: Message[], where?: Where) => encode({ messages }, where).body['contents'];
const partsOf = (content: InnerPart[], where?: Where) =>
  ((contents([{ role: 'user', content }], where) as JsonObject[])[0] as JsonObject)['parts'];
const user = (content: Message['content']): Message => ({ role: 'user', content: content ?? null });
const call = (id: string, name = 'look', args = '{}') => ({
  id,
  type: 'function' as const,
  function: { name, arguments: args },
});
const tool = (name: string, more: object = {}): FunctionTool => ({ type: 'function', function: { name, ...more } });
const calling = (request: Partial<ChatRequest>) =>
  (encode(request).body['toolConfig'] as JsonObject | undefined)?.['functionCallingConfig'];

describe('the address', () => {
  test('contains the model and the method; the body contains neither', () => {
    expect(encode({ stream: true }).path).toBe('/models/gemini-3-flash:streamGenerateContent?alt=sse');
    const whole = encode({}, { model: 'tuned/a b' });
    expect(whole.path).toBe('/models/tuned%2Fa%20b:generateContent');
    expect(Object.keys(whole.body)).toEqual(['contents']);
  });

  test('does not contain the credential, which is sent in a header', () => {
    const signable = { method: 'POST', url: 'u', headers: {}, payload: '' };
    expect(geminiGenerateContent.authorize('key', signable, 0, {})).toEqual({ 'x-goog-api-key': 'key' });
    expect(geminiGenerateContent.authorize('Bearer t', signable, 0, { google_cloud: true })).toEqual({
      authorization: 'Bearer t',
    });
  });
});

describe('turns', () => {
  test('system messages are separate, turns are merged, and a user turn is first', () => {
    const { body } = encode({
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'developer', content: [{ type: 'text', text: 'Be kind.' }] },
        { role: 'assistant', content: 'Hello' },
        { role: 'user', content: 'One', name: 'ann' },
        { role: 'system', content: 'Later.' },
        user('Two'),
      ],
    });
    expect(body['systemInstruction']).toEqual({ parts: [{ text: 'Be brief.' }, { text: 'Be kind.' }] });
    expect(body['contents']).toEqual([
      { role: 'user', parts: [{ text: '(continue)' }] },
      { role: 'model', parts: [{ text: 'Hello' }] },
      { role: 'user', parts: [{ text: 'ann: One' }, { text: 'Later.' }, { text: 'Two' }] },
    ]);
  });

  test('a model without system prompts gets them in the user turn', () => {
    const messages: Message[] = [{ role: 'system', content: 'Be brief.' }, user('Hi')];
    expect(contents(messages, { model: 'gemma-3-27b-it' })).toEqual([
      { role: 'user', parts: [{ text: 'Be brief.' }, { text: 'Hi' }] },
    ]);
  });

  test('results of parallel calls are grouped in the order of the calls, and media follow', () => {
    const messages: Message[] = [
      user('Go'),
      { role: 'assistant', content: null, tool_calls: [call('1'), call('2'), call('3')] },
      { role: 'tool', tool_call_id: '2', content: '{"a":7006652.0}' },
      {
        role: 'tool',
        tool_call_id: '1',
        content: [
          { type: 'text', text: 'one' },
          { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
        ],
      },
      user('And?'),
    ];
    const { body, report } = encode({ messages });
    expect(JSON.stringify((body['contents'] as JsonObject[])[2])).toBe(
      JSON.stringify({
        role: 'user',
        parts: [
          { functionResponse: { id: '1', name: 'look', response: { output: 'one' } } },
          { functionResponse: { id: '2', name: 'look', response: { a: 'NUMBER' } } },
          { functionResponse: { id: '3', name: 'look', response: { error: '(no result)' } } },
          { inlineData: { mimeType: 'audio/wav', data: 'AAAA' } },
          { text: 'And?' },
        ],
      }).replace('"NUMBER"', '7006652.0'),
    );
    expect(report.map(({ reason }) => reason)).toEqual(['the call of look had no result: an empty one was added']);
  });

  test('an image in a result is inside it for new models and after it for older ones', () => {
    const image: InnerPart = { type: 'image_url', image_url: { url: 'data:image/png;base64,aW1n' } };
    const messages: Message[] = [
      user('Go'),
      { role: 'assistant', content: null, tool_calls: [call('1')] },
      {
        role: 'tool',
        tool_call_id: '1',
        content: [image],
        ext: { wire: 'anthropic-messages', rest: { is_error: true } },
      },
    ];
    const inlineData = { mimeType: 'image/png', data: 'aW1n' };
    const response = { id: '1', name: 'look', response: { error: '' } };
    const turn = (model: string) => (contents(messages, { model }) as JsonObject[])[2]!['parts'];
    expect(turn('gemini-3-flash')).toEqual([{ functionResponse: { ...response, parts: [{ inlineData }] } }]);
    expect(turn('gemini-2.5-flash')).toEqual([{ functionResponse: response }, { inlineData }]);
  });

  test('a result without its call is sent as text, and a repeated id is made unique', () => {
    const messages: Message[] = [
      user('Go'),
      { role: 'tool', tool_call_id: 'x', content: 'lost' },
      { role: 'assistant', content: null, tool_calls: [call('1')] },
      { role: 'tool', tool_call_id: '1', content: 'a' },
      { role: 'assistant', content: null, tool_calls: [call('1', 'look', 'no json')] },
      { role: 'tool', tool_call_id: '1', content: 'b' },
    ];
    const { body, report } = encode({ messages }, { model: 'gemini-2.5-flash' });
    const contents = body['contents'] as { parts: JsonObject[] }[];
    expect(contents[0]!.parts[1]).toEqual({ text: 'Tool result (x): lost' });
    expect(contents[3]!.parts).toEqual([{ functionCall: { id: '1#1', name: 'look', args: { _raw: 'no json' } } }]);
    expect(contents[4]!.parts).toEqual([{ functionResponse: { id: '1#1', name: 'look', response: { output: 'b' } } }]);
    expect(report).toHaveLength(2);
  });
});

describe('signatures', () => {
  const google = (more: object): ReasoningDetail => ({ format: 'google-gemini-v1', ...more }) as ReasoningDetail;
  const loop = (details: ReasoningDetail[], calls = [call('1'), call('2')]): Message[] => [
    user('Go'),
    { role: 'assistant', content: 'I look.', reasoning_details: details, tool_calls: calls },
    ...calls.map(({ id }): Message => ({ role: 'tool', tool_call_id: id, content: 'x' })),
  ];
  const signed = (messages: Message[], where?: Where) =>
    (contents(messages, where) as { parts: JsonObject[] }[])[1]!.parts.map((part) => part['thoughtSignature'] ?? null);

  test('are sent back with their call and their text', () => {
    const details = [
      google({ type: 'reasoning.text', text: 'Unsigned thoughts are for reading.' }),
      google({ type: 'reasoning.text', signature: 'dGV4dA==' }),
      google({ type: 'reasoning.encrypted', data: 'c2Vjb25k', id: '2' }),
      google({ type: 'reasoning.encrypted', data: 'Zmlyc3Q=', id: '1' }),
      google({ type: 'reasoning.encrypted', data: 'ZG91Ymxl', id: '1' }),
    ];
    expect(signed(loop(details))).toEqual(['dGV4dA==', 'Zmlyc3Q=', 'c2Vjb25k']);
  });

  test('without a call are sent with the first call, or in an empty last part', () => {
    expect(signed(loop([google({ type: 'reasoning.encrypted', data: 'YQ==' })]))).toEqual([null, 'YQ==', null]);
    const messages: Message[] = [
      user('Go'),
      { role: 'assistant', content: null, reasoning_details: [google({ type: 'reasoning.text', signature: 'YQ==' })] },
    ];
    expect((contents(messages) as JsonObject[])[1]).toEqual({
      role: 'model',
      parts: [{ text: '', thoughtSignature: 'YQ==' }],
    });
  });

  test('of reasoning are replayed with the reasoning', () => {
    const messages: Message[] = [
      user('Go'),
      {
        role: 'assistant',
        content: 'a',
        reasoning_details: [google({ type: 'reasoning.text', text: 'Hm.', signature: 'YQ==' })],
      },
    ];
    expect((contents(messages) as JsonObject[])[1]).toEqual({
      role: 'model',
      parts: [{ text: 'Hm.', thought: true, thoughtSignature: 'YQ==' }, { text: 'a' }],
    });
  });

  test('missing in the current turn are bypassed for the first call, from the third generation on', () => {
    const foreign: ReasoningDetail[] = [
      { type: 'reasoning.text', text: 'Hm.', signature: 'YQ==', format: 'anthropic-claude-v1' },
    ];
    expect(signed(loop(foreign))).toEqual([null, BYPASS, null]);
    expect(signed(loop(foreign), { model: 'gemini-2.5-pro' })).toEqual([null, null, null]);
    // A turn that the user has answered is over; a user text right after results does not start a new one.
    expect(signed([...loop(foreign), { role: 'assistant', content: 'Done.' }, user('More')])).toEqual([
      null,
      null,
      null,
    ]);
    expect(signed([...loop(foreign), user('More')])).toEqual([null, BYPASS, null]);
    // Blocks after added results, in a turn that the client sent as two messages, do not start one either.
    const unanswered = loop(foreign).slice(0, 2);
    expect(signed([...unanswered, { role: 'assistant', content: 'Wait.' }, user('More')])[1]).toBe(BYPASS);
    expect(encode({ messages: loop(foreign) }).report).toEqual([
      {
        kind: 'dropped',
        field: 'messages[1].reasoning_details[0]',
        reason: 'the reasoning of another provider is not replayed',
      },
    ]);
  });

  test('that were refused are omitted, with all opaque state', () => {
    const messages = loop([google({ type: 'reasoning.encrypted', data: 'YQ==', id: '1' })]);
    messages[1]!.ext = {
      wire: 'gemini-generate-content',
      rest: {},
      natives: [{ type: 'native', wire: 'gemini-generate-content', block: { toolCall: {}, thoughtSignature: 'Yg==' } }],
      order: [
        { kind: 'text', at: 0, ext: { wire: 'gemini-generate-content', rest: { thoughtSignature: 'Yw==' } } },
        { kind: 'native', at: 0 },
      ],
    };
    expect(signed(messages, { strip_state: true })).toEqual([null, BYPASS, null]);
    expect(signed(messages)).toEqual(['Yw==', 'Yg==', 'YQ==', null]);
  });
});

describe('media', () => {
  const image = (url: string): InnerPart => ({ type: 'image_url', image_url: { url } });
  const file = (fileData: string, filename?: string): InnerPart => ({
    type: 'file',
    file: { file_data: fileData, ...(filename ? { filename } : {}) },
  });
  const youtube = 'https://www.youtube.com/watch?v=1';

  test.each<[string, InnerPart, object]>([
    ['a data URL', image('data:image/webp;base64,AAAA'), { inlineData: { mimeType: 'image/webp', data: 'AAAA' } }],
    ['a PDF', file('data:application/pdf;base64,AAAA'), { inlineData: { mimeType: 'application/pdf', data: 'AAAA' } }],
    [
      'a document as bare base64',
      file('JVBERi0xLjE='),
      { inlineData: { mimeType: 'application/pdf', data: 'JVBERi0xLjE=' } },
    ],
    [
      'JSON, which is sent as text',
      file('data:application/json;base64,e30='),
      { inlineData: { mimeType: 'text/plain', data: 'e30=' } },
    ],
    [
      'sound',
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } },
      { inlineData: { mimeType: 'audio/mp3', data: 'AAAA' } },
    ],
    [
      'a video',
      { type: 'video_url', video_url: { url: 'data:video/mp4;base64,AAAA' } },
      { inlineData: { mimeType: 'video/mp4', data: 'AAAA' } },
    ],
    [
      'a YouTube video',
      { type: 'video_url', video_url: { url: youtube } },
      { fileData: { fileUri: youtube, mimeType: 'video/mp4' } },
    ],
    [
      'an uploaded file',
      { type: 'file', file: { file_id: 'https://generativelanguage.googleapis.com/v1beta/files/a' } },
      { fileData: { fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/a' } },
    ],
  ])('%s', (_name, part, expected) => {
    expect(partsOf([part])).toEqual([expected]);
  });

  test('at an address is fetched first if Google does not read it directly', () => {
    const url = 'https://a.example/cat.png';
    const messages = [user([image(url), image(url), image(youtube), image('data:image/png;base64,AA==')])];
    const endpoint = { quirks: {} } as Parameters<typeof geminiGenerateContent.requiredMedia>[1];
    expect(geminiGenerateContent.requiredMedia({ messages }, endpoint)).toEqual([{ url, kind: 'image' }]);
    expect(() => partsOf([image(url)])).toThrow(GatewayError);
    const media = new Map([[url, { mime_type: 'image/png', base64: 'AAAA' }]]);
    expect(partsOf([image(url)], { media })).toEqual([{ inlineData: { mimeType: 'image/png', data: 'AAAA' } }]);
  });

  test('in Cloud Storage is accepted on Vertex AI only', () => {
    const part = file('gs://bucket/a.pdf');
    expect(() => partsOf([part])).toThrow(/Vertex AI only/);
    expect(partsOf([part], { quirks: { google_cloud: true } })).toEqual([
      { fileData: { fileUri: 'gs://bucket/a.pdf', mimeType: 'application/pdf' } },
    ]);
  });

  test.each([image('ftp://a/b'), image(''), file('')])('that cannot be fetched is refused: %j', (part) => {
    expect(() => partsOf([part])).toThrow(GatewayError);
  });
});

describe('tools', () => {
  const odd = 'weather in Oslo!';

  test('are declared with their unchanged schema, under names that the wire accepts', () => {
    const parameters = { $ref: '#/$defs/a', $defs: { a: { type: 'object', additionalProperties: false } } };
    const { body, state } = encode({
      tools: [tool(odd, { description: 'd', parameters }), tool('7', { parameters: {} })],
      tool_choice: { type: 'function', function: { name: odd } },
    });
    const [one, two] = (body['tools'] as { functionDeclarations: JsonObject[] }[])[0]!.functionDeclarations;
    expect(one).toEqual({
      name: expect.stringMatching(/^weather_in_Oslo__[0-9a-f]{6}$/),
      description: 'd',
      parametersJsonSchema: parameters,
    });
    expect(two).toEqual({ name: expect.stringMatching(/^_7_[0-9a-f]{6}$/) });
    expect(state['tool_names']).toEqual({ [String(one!['name'])]: odd, [String(two!['name'])]: '7' });
    expect(body['toolConfig']).toEqual({
      functionCallingConfig: { mode: 'ANY', allowedFunctionNames: [one!['name']] },
    });
  });

  test('are selected by mode', () => {
    const tools = [tool('a'), tool('b')];
    expect(calling({ tools })).toBeUndefined();
    expect(calling({ tools, tool_choice: 'auto' })).toBeUndefined();
    expect(calling({ tools, tool_choice: 'none' })).toEqual({ mode: 'NONE' });
    expect(calling({ tools, tool_choice: 'required' })).toEqual({ mode: 'ANY' });
    expect(calling({ tools: [tool('a', { strict: true })] })).toEqual({ mode: 'VALIDATED' });
    expect(calling({ tools: [], tool_choice: 'required' })).toBeUndefined();
    const { body } = encode({
      tools,
      tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'b' }] },
    });
    expect([body['tools'], body['toolConfig']]).toEqual([
      [{ functionDeclarations: [{ name: 'b' }] }],
      { functionCallingConfig: { mode: 'ANY' } },
    ]);
  });

  test("Google's own tools are declared beside functions; their calls are included from the third generation on", () => {
    const tools: ChatRequest['tools'] = [
      tool('a'),
      { type: 'native', wire: 'gemini-generate-content', block: { googleSearch: {} } },
    ];
    const bodyFor = (model: string, quirks: Quirks = {}) => encode({ tools }, { model, quirks }).body;
    expect(bodyFor('gemini-3-flash')).toMatchObject({
      tools: [{}, { googleSearch: {} }],
      toolConfig: { includeServerSideToolInvocations: true },
    });
    expect(bodyFor('gemini-2.5-flash')['toolConfig']).toBeUndefined();
    expect(bodyFor('gemini-3-flash', { google_cloud: true })['toolConfig']).toBeUndefined();
  });

  test('and JSON output are combined on new models; on older ones a function replaces JSON output', () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } };
    const responseFormat = { type: 'json_schema' as const, json_schema: { name: 'a', schema } };
    expect(config({ response_format: responseFormat })).toMatchObject({
      responseMimeType: 'application/json',
      responseJsonSchema: schema,
    });
    expect(config({ response_format: { type: 'json_object' } })).toMatchObject({
      responseMimeType: 'application/json',
    });
    const request = { response_format: responseFormat, tools: [tool('a')] };
    expect(config(request)).toMatchObject({ responseJsonSchema: schema });
    const { body, state } = encode(request, { model: 'gemini-2.5-flash' });
    expect(state['shim']).toBe('json_response');
    expect(body).toMatchObject({
      tools: [{ functionDeclarations: [{ name: 'a' }, { name: 'json_response', parametersJsonSchema: schema }] }],
      toolConfig: { functionCallingConfig: { mode: 'ANY' } },
    });
    expect(body['generationConfig']).not.toHaveProperty('responseMimeType');
  });
});

describe('thinking', () => {
  const thinking = (request: Partial<ChatRequest>, model: string) => config(request, { model })['thinkingConfig'];

  test.each<[string, Partial<ChatRequest>, object | undefined]>([
    ['gemini-3-flash', {}, { includeThoughts: true }],
    ['gemini-3-flash', { include_reasoning: false }, { includeThoughts: false }],
    ['gemini-3-flash', { reasoning: { exclude: true } }, { includeThoughts: false }],
    ['gemini-3-flash', { reasoning: { enabled: true } }, { includeThoughts: true }],
    ['gemini-3-flash', { reasoning: { effort: 'minimal' } }, { includeThoughts: true, thinkingLevel: 'MINIMAL' }],
    ['gemini-3-flash', { reasoning_effort: 'xhigh' }, { includeThoughts: true, thinkingLevel: 'HIGH' }],
    [
      'gemini-3-flash',
      { reasoning: { max_tokens: 5_000 }, max_tokens: 10_000 },
      { includeThoughts: true, thinkingLevel: 'MEDIUM' },
    ],
    ['gemini-3-flash', { reasoning: { effort: 'none' } }, { includeThoughts: false, thinkingLevel: 'MINIMAL' }],
    ['gemini-3.1-pro-preview', { reasoning: { effort: 'minimal' } }, { includeThoughts: true, thinkingLevel: 'LOW' }],
    ['gemini-3.1-pro-preview', { reasoning: { effort: 'medium' } }, { includeThoughts: true, thinkingLevel: 'MEDIUM' }],
    ['gemini-2.5-flash', { reasoning: { effort: 'none' } }, { includeThoughts: false, thinkingBudget: 0 }],
    ['gemini-2.5-pro', { reasoning: { enabled: false } }, { includeThoughts: false, thinkingBudget: 128 }],
    ['gemini-2.5-pro', { reasoning: { max_tokens: 100_000 } }, { includeThoughts: true, thinkingBudget: 32_768 }],
    ['gemini-2.5-flash-lite', { reasoning: { max_tokens: 100 } }, { includeThoughts: true, thinkingBudget: 512 }],
    [
      'gemini-2.5-flash',
      { reasoning: { effort: 'high' }, max_tokens: 10_000 },
      { includeThoughts: true, thinkingBudget: 8_000 },
    ],
    ['gemini-2.5-flash', { reasoning: { effort: 'low' } }, { includeThoughts: true, thinkingBudget: 1_024 }],
    ['gemini-2.5-flash', { reasoning: { enabled: true } }, { includeThoughts: true, thinkingBudget: -1 }],
    ['gemini-2.0-flash', { reasoning: { effort: 'high' } }, undefined],
    ['gemini-2.5-flash-image', {}, undefined],
    ['gemma-4-31b-it', {}, undefined],
    ['gemini-flash-latest', { reasoning: { effort: 'low' } }, { includeThoughts: true, thinkingLevel: 'LOW' }],
  ])('%s, %j', (model, request, expected) => {
    expect(thinking(request, model)).toEqual(expected);
  });
});

describe('sampling and output parameters', () => {
  test('have the names of the wire, within its bounds', () => {
    const request: Partial<ChatRequest> = {
      temperature: 1.4,
      top_p: 0.9,
      top_k: 3.7,
      seed: 2 ** 40 + 5,
      stop: ['a', '', 'b'],
      logprobs: true,
      top_logprobs: 50,
      max_tokens: 99,
      max_completion_tokens: 50,
    };
    expect(config(request, { model: 'gemini-2.0-flash', most: 40 })).toEqual({
      temperature: 1.4,
      topP: 0.9,
      topK: 3,
      seed: 5,
      stopSequences: ['a', 'b'],
      responseLogprobs: true,
      logprobs: 20,
      maxOutputTokens: 40,
    });
  });

  test('penalties and logprobs are sent only to models that support them', () => {
    const request = { presence_penalty: 0.5, frequency_penalty: 0, logprobs: true, top_logprobs: 2 };
    const sent = { presencePenalty: 0.5, responseLogprobs: true, logprobs: 2 };
    expect(config(request, { model: 'gemini-2.0-flash' })).toEqual(sent);
    expect(config(request, { model: 'gemini-2.5-flash', quirks: { google_cloud: true } })).toMatchObject(sent);
    for (const options of [{ model: 'gemini-2.5-flash' }, {}, { quirks: { google_cloud: true } }]) {
      const left = Object.keys(config(request, options) ?? {});
      expect(left.filter((name) => name in sent)).toEqual([]);
      expect(encode(request, options).report).toEqual([
        { kind: 'dropped', field: 'presence_penalty', reason: 'the model has no penalties' },
        { kind: 'dropped', field: 'logprobs', reason: 'the model reports no logprobs' },
      ]);
    }
  });

  test('images and audio are requested', () => {
    const request = {
      modalities: ['image', 'text'],
      audio: { voice: 'Kore', format: 'wav' },
      image_config: { aspect_ratio: '16:9', image_size: '2K', other: 1 },
    };
    const { body, report } = encode(request, { model: 'gemini-2.5-flash-image' });
    expect(body['generationConfig']).toEqual({
      responseModalities: ['IMAGE', 'TEXT'],
      speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } } },
      imageConfig: { aspectRatio: '16:9', imageSize: '2K' },
    });
    expect(report.map(({ field }) => field)).toEqual(['audio.format', 'image_config.other']);
  });

  test('the service tier and labels are sent in the fields of the API in use', () => {
    const request = { service_tier: 'flex', metadata: { team: 'a-1', Bad: 'b' } };
    const studio = encode(request);
    expect([studio.body['serviceTier'], studio.body['labels']]).toEqual(['flex', undefined]);
    const cloud = encode(request, { quirks: { google_cloud: true } });
    expect([cloud.body['serviceTier'], cloud.body['labels']]).toEqual([undefined, { team: 'a-1' }]);
    expect(cloud.report.map(({ field }) => field)).toEqual(['metadata.Bad', 'service_tier']);
    expect([
      geminiGenerateContent.serviceTier(studio.body),
      geminiGenerateContent.outputBound({ generationConfig: { maxOutputTokens: 5 } }),
    ]).toEqual(['flex', 5]);
  });

  test('parameters without a field on the wire are dropped and reported', () => {
    const { report } = encode({
      min_p: 0.1,
      logit_bias: { '1': 2 },
      user: 'a',
      web_search_options: {},
      parallel_tool_calls: false,
      tools: [tool('a')],
    });
    expect(report.map(({ field }) => field)).toEqual([
      'min_p',
      'logit_bias',
      'user',
      'web_search_options',
      'parallel_tool_calls',
    ]);
  });

  test('a cache hint is dropped and reported', () => {
    const messages = [user([{ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }])];
    expect(encode({ messages }).report).toEqual([
      { kind: 'dropped', field: 'cache_control', reason: 'this upstream caches prompts by itself' },
    ]);
  });
});

test('clients cannot set fields that change the cost bound or the prompt, in either spelling', () => {
  for (const field of [
    'contents',
    'systemInstruction',
    'system_instruction',
    'cachedContent',
    'cached_content',
    'generation_config',
    'generationConfig.maxOutputTokens',
    'generationConfig.max_output_tokens',
    'generationConfig.candidateCount',
    'generationConfig.candidate_count',
    'model',
    'stream',
  ]) {
    expect(geminiGenerateContent.reserved.has(field), field).toBe(true);
  }
});
