/**
 * Twenty chat requests that together use everything that a provider may receive. Each dialect encodes all of them, and
 * its output is checked against its provider's own types.
 */
import type { Media } from '../src/providers/dialect.ts';
import type { ChatRequest, FunctionTool, Message } from '../src/schemas/inner.ts';

/**
 * An image of one pixel, a page, a tenth of a second of silence and the beginning of a video: only their transport is
 * tested.
 */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const PDF = 'JVBERi0xLjEKMSAwIG9iajw8L1R5cGUvQ2F0YWxvZz4+ZW5kb2JqCnRyYWlsZXI8PC9Sb290IDEgMCBSPj4KJSVFT0YK';
const WAV = `UklGRkQDAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YSADAACA${'gICA'.repeat(266)}gA==`;
const MP4 = 'AAAAGGZ0eXBtcDQyAAAAAG1wNDJpc29tAAAACGZyZWU=';

const IMAGE_URL = 'https://images.example/cat.png';

/** What the gateway would have fetched for a provider that accepts no URLs. */
export const twentyMedia: Media = new Map([[IMAGE_URL, { mime_type: 'image/png', base64: PNG }]]);

const weather: FunctionTool = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'Tells the weather of a city.',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string' }, unit: { type: 'string', enum: ['celsius', 'kelvin'] } },
      required: ['city'],
      additionalProperties: false,
    },
  },
};
const clock: FunctionTool = {
  type: 'function',
  function: {
    name: 'get_time',
    parameters: { type: 'object', properties: { zone: { type: 'string' } }, required: ['zone'] },
  },
};
const user = (content: NonNullable<Message['content']>): Message => ({ role: 'user', content });
const call = (id: string, name: string, args: object) => ({
  id,
  type: 'function' as const,
  function: { name, arguments: JSON.stringify(args) },
});

/** By name. Each can be encoded for any endpoint. Fields that an endpoint does not support are dropped and reported, or refused with 400. */
export const twentyRequests: Readonly<Record<string, ChatRequest>> = {
  text: {
    messages: [{ role: 'system', content: 'Be brief.' }, user('Why is the sky blue? ☁️')],
    max_tokens: 500,
  },
  'images by data URL and by address': {
    messages: [
      user([
        { type: 'text', text: 'Which of these shows a cat?' },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}`, detail: 'low' } },
        { type: 'image_url', image_url: { url: IMAGE_URL } },
      ]),
    ],
  },
  'a PDF': {
    messages: [
      user([
        { type: 'text', text: 'Sum it up.' },
        {
          type: 'file',
          file: { filename: 'report 2026 (final).pdf', file_data: `data:application/pdf;base64,${PDF}` },
        },
      ]),
    ],
  },
  audio: {
    messages: [
      user([
        { type: 'text', text: 'What is said?' },
        { type: 'input_audio', input_audio: { data: WAV, format: 'wav' } },
      ]),
    ],
  },
  video: {
    messages: [
      user([
        { type: 'text', text: 'What happens?' },
        { type: 'video_url', video_url: { url: `data:video/mp4;base64,${MP4}` } },
      ]),
    ],
  },
  tools: { messages: [user('What is the weather in Oslo?')], tools: [weather], tool_choice: 'auto' },
  'parallel calls': {
    messages: [
      user('Weather and time in Oslo?'),
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          call('call_1', 'get_weather', { city: 'Oslo' }),
          call('call_2', 'get_time', { zone: 'Europe/Oslo' }),
        ],
      },
      { role: 'tool', tool_call_id: 'call_1', content: '{"celsius":4}' },
      { role: 'tool', tool_call_id: 'call_2', content: '14:00' },
    ],
    tools: [weather, clock],
    parallel_tool_calls: true,
  },
  'tool results with parts': {
    messages: [
      user('Show me Oslo.'),
      { role: 'assistant', content: 'One moment.', tool_calls: [call('call_1', 'get_weather', { city: 'Oslo' })] },
      {
        role: 'tool',
        tool_call_id: 'call_1',
        content: [
          { type: 'text', text: 'Here it is:' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
        ],
      },
      user('Describe it.'),
    ],
    tools: [weather],
  },
  'a forced tool': {
    messages: [user('Oslo.')],
    tools: [weather, clock],
    tool_choice: { type: 'function', function: { name: 'get_weather' } },
    parallel_tool_calls: false,
  },
  'forbidden tools': { messages: [user('Oslo.')], tools: [weather], tool_choice: 'none' },
  'a JSON object': {
    messages: [user('Answer in JSON: what is the capital of Norway?')],
    response_format: { type: 'json_object' },
  },
  'a JSON schema': {
    messages: [user('What is the capital of Norway?')],
    response_format: {
      type: 'json_schema',
      json_schema: {
        name: 'capital',
        description: 'A capital.',
        strict: true,
        schema: {
          type: 'object',
          properties: { city: { type: 'string' }, population: { type: 'integer' } },
          required: ['city', 'population'],
          additionalProperties: false,
        },
      },
    },
  },
  'a reasoning effort': { messages: [user('Prove it.')], reasoning: { effort: 'high' }, max_tokens: 8_000 },
  'a reasoning budget': { messages: [user('Prove it.')], reasoning: { max_tokens: 2_048 }, max_tokens: 8_000 },
  'replayed reasoning': {
    messages: [
      user('What is the weather in Oslo?'),
      {
        role: 'assistant',
        content: 'I will look.',
        reasoning_details: [
          { type: 'reasoning.text', text: 'They ask for Oslo.', format: 'unknown', index: 0 },
          { type: 'reasoning.text', text: 'A tool.', signature: 'c2lnbmVk', format: 'anthropic-claude-v1', index: 1 },
          { type: 'reasoning.encrypted', data: 'b3BhcXVl', format: 'google-gemini-v1', id: 'call_1', index: 2 },
          { type: 'reasoning.summary', summary: 'Look it up.', format: 'openai-responses-v1', index: 3 },
          { type: 'reasoning.encrypted', data: 'ZW5j', format: 'openai-responses-v1', id: 'rs_1', index: 4 },
        ],
        tool_calls: [call('call_1', 'get_weather', { city: 'Oslo' })],
      },
      { role: 'tool', tool_call_id: 'call_1', content: '4 °C' },
    ],
    tools: [weather],
    reasoning: { effort: 'medium' },
    max_tokens: 8_000,
  },
  'cache control': {
    messages: [
      { role: 'system', content: [{ type: 'text', text: 'A long text.', cache_control: { type: 'ephemeral' } }] },
      user([{ type: 'text', text: 'And a question.', cache_control: { type: 'ephemeral', ttl: '1h' } }]),
    ],
    tools: [{ ...weather, cache_control: { type: 'ephemeral' } }],
  },
  'a search of the web': {
    messages: [
      user('Who won?'),
      {
        role: 'assistant',
        content: 'Norway won.',
        annotations: [
          { type: 'url_citation', url_citation: { url: 'https://news.example/', start_index: 0, end_index: 11 } },
        ],
      },
      user('And today?'),
    ],
    web_search_options: { search_context_size: 'low' },
  },
  'all that bears on sampling': {
    messages: [user('Surprise me.')],
    temperature: 1.4,
    top_p: 0.9,
    top_k: 40,
    min_p: 0.05,
    top_a: 0.1,
    frequency_penalty: 0.5,
    presence_penalty: -0.5,
    repetition_penalty: 1.1,
    logit_bias: { '50256': -100 },
    logprobs: true,
    top_logprobs: 3,
  },
  'stop, seed, user and tier': {
    messages: [user('Count.')],
    stop: ['4', '\n\n', 'five', 'six'],
    seed: 7,
    user: 'someone',
    service_tier: 'flex',
    verbosity: 'low',
    metadata: { purpose: 'test' },
    max_completion_tokens: 100,
    stream: true,
  },
  'a long conversation with a tool loop': {
    messages: [
      { role: 'developer', content: 'You plan journeys.' },
      { role: 'user', name: 'ann', content: 'To Oslo?' },
      { role: 'assistant', content: 'When?' },
      { role: 'user', name: 'ben', content: 'Now.' },
      { role: 'assistant', content: null, tool_calls: [call('call_1', 'get_weather', { city: 'Oslo' })] },
      { role: 'tool', tool_call_id: 'call_1', content: 'rain' },
      { role: 'assistant', content: '', tool_calls: [call('call_2', 'get_time', {})] },
      { role: 'tool', tool_call_id: 'call_2', content: '' },
      { role: 'assistant', content: 'Take an umbrella.' },
      { role: 'system', content: 'Speak of trains only.' },
      user('And the train?'),
    ],
    tools: [weather, clock],
    stream: true,
  },
};
