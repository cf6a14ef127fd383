/**
 * Requests and answers by their length: the worst ones that a caller or a provider may send, and large ordinary ones.
 */
import type { Wire } from '../../src/schemas/inner.ts';
import * as answers from './answers.ts';
import { furtherShapes } from './further-shapes.ts';

export interface Shape {
  name: string;
  /** Without `/api/v1`. */
  path: string;
  is_legal: boolean;
  body(bytes: number): string;
  /** All that the provider's socket writes if the model is a `scripted/<wire>`. */
  answer?(bytes: number): Buffer;
  /** Sent with a key that has a spend limit. */
  is_limited?: true;
  /** Sent with a key whose requests and answers are filtered. */
  is_filtered?: true;
  /** Sent with a key whose requests and answers are logged. */
  is_logged?: true;
  /** Sent with the management key. */
  is_managed?: true;
  /** Default: JSON. One character of the body is then one byte. */
  content_type?: string;
  /** The request is sent in HTTP chunks of this size. */
  piece_bytes?: number;
}

const MODEL = 'sandbox/echo';

function repeated(unit: (index: number) => string, bytes: number): string {
  const parts: string[] = [];
  for (let length = 0; length < bytes; ) {
    const part = unit(parts.length);
    parts.push(part);
    length += part.length + 1;
  }
  return parts.join();
}

const text = (bytes: number) => 'She said "yes", and\nwalked on. '.repeat(Math.ceil(bytes / 32)).slice(0, bytes);
const wide = (bytes: number) => '彼女は「はい」と言った。'.repeat(Math.ceil(bytes / 36));
const data = (bytes: number) => 'iVBORw0KGgoAAAANSUhEUgAA'.repeat(Math.ceil(bytes / 24));
const chat = (content: string, more = '') =>
  `{"model":"${MODEL}","max_tokens":5,"messages":[{"role":"user","content":${content}}]${more}}`;
const string = (value: string) => JSON.stringify(value);
const schema = (bytes: number) =>
  `{"type":"object","properties":{${repeated((i) => `"field_${i}":{"type":"string","description":"What field ${i} is of"}`, bytes)}}}`;
const MESSAGES = 10_000;
const TOOLS = 1_000;

const image = (bytes: number, count = 1) =>
  Array.from(
    { length: count },
    (_, at) =>
      `{"type":"image_url","image_url":{"url":"data:image/png;base64,${String(at).padStart(8, 'A')}${data(bytes / count)}"}}`,
  ).join();
const IMAGES = 40;
const tools = (bytes: number) =>
  `,"tools":[${Array.from({ length: TOOLS }, (_, i) => `{"type":"function","function":{"name":"f${i}","description":"Does a thing","parameters":${schema(Math.max(50, Math.min(bytes, 1.9e6) / TOOLS - 100))}}}`).join()}]`;

const WIRES = [
  'openai-chat',
  'openai-responses',
  'anthropic-messages',
  'gemini-generate-content',
  'bedrock-converse',
  'cohere-chat',
] as const satisfies Wire[];

/** Requests for the encoder of each wire. */
function shapesOfWire(wire: Wire): Shape[] {
  const model = `scripted/${wire}`;
  const requestWith = (content: string, more = '') => chat(content, more).replace(MODEL, model);
  const shared = { path: '/chat/completions', is_legal: true, answer: () => answers.wholeTexts[wire]!(10) } as const;
  const parts = (n: number) => `[${repeated(() => '{"type":"text","text":"a"}', Math.min(n, 1.3e6))}]`;
  return [
    { ...shared, name: `tools for ${wire}`, body: (n) => requestWith('"Hello"', tools(n)) },
    { ...shared, name: `small parts for ${wire}`, body: (n) => requestWith(parts(n)) },
    { ...shared, name: `small parts of /messages for ${wire}`, path: '/messages', body: (n) => requestWith(parts(n)) },
    {
      ...shared,
      name: `small messages for ${wire}`,
      body: (n) =>
        `{"model":"${model}","messages":[${repeated(() => '{"role":"user","content":"a"}', Math.min(n, 2.9e5))}]}`,
    },
    {
      ...shared,
      name: `small items of /responses for ${wire}`,
      path: '/responses',
      body: (n) =>
        `{"model":"${model}","input":[${repeated(() => '{"role":"user","content":"a"}', Math.min(n, 2.9e5))}]}`,
    },
    {
      ...shared,
      name: `calls for ${wire}`,
      body: (n) =>
        `{"model":"${model}","max_tokens":5,"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[${repeated((i) => `{"id":"c${i}","type":"function","function":{"name":"f","arguments":"{\\"a\\":1}"}}`, Math.min(n, 5e6))}]}]}`,
    },
    {
      ...shared,
      name: `thinking parts of /messages for ${wire}`,
      path: '/messages',
      body: (n) =>
        `{"model":"${model}","max_tokens":5,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[${repeated(() => '{"type":"thinking","thinking":"a","signature":"b"}', Math.min(n, 2.5e5))}]},{"role":"user","content":"b"}]}`,
    },
    {
      ...shared,
      name: `reasoning details for ${wire}`,
      body: (n) =>
        `{"model":"${model}","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","reasoning_details":[${repeated((i) => `{"type":"reasoning.text","text":"a","signature":"b","index":${i}}`, Math.min(n, 3e6))}]},{"role":"user","content":"c"}]}`,
    },
    {
      ...shared,
      name: `reasoning items of /responses for ${wire}`,
      path: '/responses',
      body: (n) =>
        `{"model":"${model}","input":[{"role":"user","content":"a"},${repeated((i) => `{"type":"reasoning","id":"rs_${i}","summary":[{"type":"summary_text","text":"a"}]}`, Math.min(n, 3.8e5))},{"role":"user","content":"b"}]}`,
    },
    {
      ...shared,
      name: `results of calls of /messages for ${wire}`,
      path: '/messages',
      body: (n) =>
        `{"model":"${model}","max_tokens":5,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[${repeated((i) => `{"type":"tool_use","id":"t${i}","name":"f","input":{}}`, Math.min(n, 1.1e6) / 2)}]},{"role":"user","content":[${repeated((i) => `{"type":"tool_result","tool_use_id":"t${i}","content":"a"}`, Math.min(n, 1.1e6) / 2)}]}]}`,
    },
    {
      ...shared,
      name: `schemas of many keys for ${wire}`,
      body: (n) =>
        requestWith(
          '"Hello"',
          `,"tools":[${repeated((j) => `{"type":"function","function":{"name":"f${j}","parameters":{"type":"object","properties":{${Array.from({ length: 5_000 }, (_, i) => `"k${j}_${i}":{}`).join()}}}}}`, Math.min(n, 1.1e6))}]`,
        ),
    },
    {
      ...shared,
      name: `an image for ${wire}, with a limit`,
      body: (n) => requestWith(`[${image(n)}]`),
      is_limited: true,
    },
    {
      ...shared,
      name: `images for ${wire}, with a limit`,
      body: (n) => requestWith(`[${image(n, IMAGES)}]`),
      is_limited: true,
    },
    {
      ...shared,
      name: `a prompt for ${wire}, with a limit`,
      body: (n) => requestWith(string(text(n))),
      is_limited: true,
    },
  ];
}

const CLIENTS = ['/chat/completions', '/messages', '/responses'] as const;
const asks = (path: string, wire: Wire, stream: boolean) =>
  path === '/responses'
    ? `{"model":"scripted/${wire}","input":"a","stream":${stream}}`
    : `{"model":"scripted/${wire}","max_tokens":5,"messages":[{"role":"user","content":"a"}],"stream":${stream}}`;

/** An answer to each client API, whole and streamed. */
function answered(name: string, wire: Wire, answer: (bytes: number) => Buffer, streams: readonly boolean[]): Shape[] {
  return CLIENTS.flatMap((path) =>
    streams.map((stream) => ({
      name: `answer: ${name} of ${wire} to ${path}${stream ? ', streamed' : ''}`,
      path,
      is_legal: true,
      body: () => asks(path, wire, stream),
      answer,
    })),
  );
}

const asksProbabilities = (path: string, wire: Wire, stream: boolean) =>
  path === '/responses'
    ? `{"model":"scripted/${wire}","input":"a","include":["message.output_text.logprobs"],"top_logprobs":20,"stream":${stream}}`
    : path === '/completions'
      ? `{"model":"scripted/${wire}","prompt":"a","logprobs":5,"stream":${stream}}`
      : `{"model":"scripted/${wire}","messages":[{"role":"user","content":"a"}],"logprobs":true,"top_logprobs":20,"stream":${stream}}`;

const probabilityShapes: readonly Shape[] = ['/chat/completions', '/completions', '/responses'].flatMap((path) =>
  [false, true].flatMap((stream) =>
    (
      [
        ['whole probabilities', answers.wholeProbabilities],
        ['streamed probabilities', answers.streamedProbabilities],
        ['probabilities in one event', answers.oneEventOfProbabilities],
      ] as const
    )
      .filter(([name]) => stream || name === 'whole probabilities')
      .map(([name, answer]) => ({
        name: `answer: ${name} to ${path}${stream ? ', streamed' : ''}`,
        path,
        is_legal: true,
        body: () => asksProbabilities(path, 'openai-chat', stream),
        answer,
      })),
  ),
);

const filteredShapes: readonly Shape[] = CLIENTS.flatMap((path) =>
  [false, true].flatMap((stream) =>
    (
      [
        ['prose', answers.wholeTexts['openai-chat']!],
        ['findings', answers.wholeFindings],
        ['digits', answers.wholeDigits],
        ['calls', answers.wholeCalls['openai-chat']!],
        ['a streamed event', answers.oneEvent],
      ] as const
    )
      .filter(([name]) => stream || name !== 'a streamed event')
      .map(([name, answer]) => ({
        name: `answer: filtered ${name} to ${path}${stream ? ', streamed' : ''}`,
        path,
        is_legal: true,
        is_filtered: true as const,
        body: () => asks(path, 'openai-chat', stream),
        answer,
      })),
  ),
);

/** The form of a transcription. Its file is filled with a piece up to the bound. */
const upload = (name: string, start: string, piece: string): Shape => ({
  name: `sound: ${name}`,
  path: '/audio/transcriptions',
  is_legal: true,
  content_type: 'multipart/form-data; boundary=b',
  body: (n) =>
    `--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nsandbox/transcribe\r\n--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n${start}${piece.repeat(Math.min(n, 24.9 * 1024 * 1024) / piece.length)}\r\n--b--\r\n`,
});
const mp3Frame = `\xff\xf3\x14\xc4${'\0'.repeat(20)}`;
const soundShapes: readonly Shape[] = [
  upload('short frames of MP3', '', mp3Frame),
  upload('short frames of AAC', '', '\xff\xf1\x50\x80\0\xff\xfc'),
  upload('short pages of Ogg', '', `OggS${'\0'.repeat(23)}`),
  upload('short elements of WebM', '\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff', '\xa3\x80'),
  upload('a form of line ends', '', '\r\n--a'),
  {
    name: 'sound: short frames of MP3, as JSON',
    path: '/audio/transcriptions',
    is_legal: true,
    body: (n) =>
      `{"model":"sandbox/transcribe","input_audio":{"format":"mp3","data":"${Buffer.from(mp3Frame.repeat(Math.min(n, 24.9 * 1024 * 1024) / mp3Frame.length), 'latin1').toString('base64')}"}}`,
  },
];
const mediaShapes: readonly Shape[] = [
  {
    name: 'addresses of images, inlined',
    path: '/chat/completions',
    is_legal: false,
    body: () =>
      chat(
        `[${Array.from({ length: 9_999 }, (_, i) => `{"type":"image_url","image_url":{"url":"https://a.example/${i}"}}`).join()}]`,
      ).replace(MODEL, 'scripted/openai-chat'),
    answer: () => answers.wholeTexts['openai-chat']!(10),
  },
  {
    name: 'an image and many values, inlined',
    path: '/chat/completions',
    is_legal: true,
    body: (n) =>
      chat(
        `[${image(64)}]`,
        `,"tools":[{"type":"function","function":{"name":"f","parameters":{"enum":[${repeated((i) => `{"a":${i}}`, Math.min(n, 0.8e6))}]}}}],"x":[${repeated(() => '[1]', Math.min(n, 0.7e6))}]`,
      ).replace(MODEL, 'scripted/openai-chat'),
    answer: () => answers.wholeTexts['openai-chat']!(10),
  },
];

const answerShapes: readonly Shape[] = [
  ...WIRES.flatMap((wire) => answered('one text', wire, answers.wholeTexts[wire]!, [false, true])),
  ...(['openai-chat', 'openai-responses'] as const).flatMap((wire) =>
    answered('calls', wire, answers.wholeCalls[wire]!, [false, true]),
  ),
  ...answered('reasoning', 'openai-chat', answers.wholeReasoning, [false, true]),
  ...answered('a refusal', 'openai-chat', answers.wholeRefusal, [false, true]),
  ...answered('a wide text', 'openai-chat', answers.wholeWideText, [false, true]),
  ...answered('a cited text', 'openai-responses', answers.wholeCitedText, [false, true]),
  ...answered('an image', 'openai-chat', answers.wholeImage, [false, true]),
  ...answered('short parts', 'openai-responses', answers.shortParts, [false, true]),
  ...answered('short calls', 'openai-chat', answers.shortCalls, [false, true]),
  ...answered('texts', 'openai-responses', answers.wholeParts, [false, true]),
  ...answered('single bytes', 'openai-chat', answers.singleBytes, [false]),
  ...answered('a stream in single bytes', 'openai-chat', answers.streamedSingleBytes, [true]),
  ...answered('data lines', 'openai-chat', answers.dataLines, [true]),
  ...answered('short data lines', 'openai-chat', answers.shortDataLines, [true]),
  ...answered('comments', 'openai-chat', answers.comments, [true]),
  ...answered('empty lines', 'openai-chat', answers.emptyLines, [true]),
  ...answered('event names', 'openai-chat', answers.eventNames, [true]),
  ...answered('stray lines', 'openai-chat', answers.strayLines, [true]),
  ...answered('one event', 'openai-chat', answers.oneEvent, [true]),
  ...answered('many events', 'openai-chat', answers.manyEvents, [true]),
  ...answered('shortest events', 'openai-chat', answers.shortestEvents, [true]),
];

export const shapes: readonly Shape[] = [
  {
    name: 'one image',
    path: '/chat/completions',
    is_legal: true,
    body: (n) =>
      chat(
        `[{"type":"text","text":"What is it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,${data(n)}"}}]`,
      ),
  },
  { name: 'one prompt', path: '/chat/completions', is_legal: true, body: (n) => chat(string(text(n))) },
  {
    name: 'one prompt with a wide character',
    path: '/chat/completions',
    is_legal: true,
    body: (n) => chat(string(`${text(n)}彼`)),
  },
  { name: 'one prompt in Japanese', path: '/chat/completions', is_legal: true, body: (n) => chat(string(wide(n))) },
  {
    name: 'a prompt for the Messages wire',
    path: '/messages',
    is_legal: true,
    body: (n) => chat(string(text(n))).replace(MODEL, 'sandbox/echo'),
  },
  {
    name: 'a prompt for the Responses API',
    path: '/responses',
    is_legal: true,
    body: (n) => `{"model":"${MODEL}","input":${string(text(n))}}`,
  },
  {
    name: 'instructions for the Responses API',
    path: '/responses',
    is_legal: true,
    body: (n) => `{"model":"${MODEL}","input":"a","instructions":${string(text(Math.min(n, 8e6)))}}`,
  },
  {
    name: 'a prompt for Gemini',
    path: '/chat/completions',
    is_legal: true,
    body: (n) => chat(string(text(n))).replace(MODEL, 'sandbox/gemini-echo'),
  },
  {
    name: 'a prompt for Bedrock',
    path: '/chat/completions',
    is_legal: true,
    body: (n) => chat(string(text(n))).replace(MODEL, 'sandbox/bedrock-echo'),
  },
  {
    name: 'an image for Bedrock',
    path: '/chat/completions',
    is_legal: true,
    body: (n) =>
      chat(
        `[{"type":"text","text":"What is it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,${data(n)}"}}]`,
      ).replace(MODEL, 'sandbox/bedrock-echo'),
  },
  {
    name: '10,000 messages',
    path: '/chat/completions',
    is_legal: true,
    body: (n) =>
      `{"model":"${MODEL}","max_tokens":5,"messages":[${Array.from({ length: MESSAGES }, (_, i) => `{"role":"${i % 2 === 0 ? 'user' : 'assistant'}","content":${string(text(Math.max(10, n / MESSAGES - 40)))}}`).join()}]}`,
  },
  {
    name: '1,000 tools',
    path: '/chat/completions',
    is_legal: true,
    body: (n) =>
      chat(
        '"Hello"',
        `,"tools":[${Array.from({ length: TOOLS }, (_, i) => `{"type":"function","function":{"name":"f${i}","description":"Does a thing","parameters":${schema(Math.max(50, Math.min(n, 1.9e6) / TOOLS - 100))}}}`).join()}]`,
      ),
  },
  {
    name: 'many small parts',
    path: '/chat/completions',
    is_legal: true,
    body: (n) => chat(`[${repeated(() => '{"type":"text","text":"a"}', Math.min(n, 4e6))}]`),
  },
  {
    name: 'many small parts of a Messages turn',
    path: '/messages',
    is_legal: true,
    body: (n) => chat(`[${repeated(() => '{"type":"text","text":"a"}', Math.min(n, 4e6))}]`),
  },
  {
    name: 'many calls of tools',
    path: '/chat/completions',
    is_legal: true,
    body: (n) =>
      `{"model":"${MODEL}","max_tokens":5,"messages":[{"role":"assistant","tool_calls":[${repeated((i) => `{"id":"c${i}","type":"function","function":{"name":"f","arguments":"{\\"a\\":1}"}}`, Math.min(n, 7e6))}]}]}`,
  },
  {
    name: 'arguments of one call',
    path: '/chat/completions',
    is_legal: true,
    body: (n) =>
      `{"model":"${MODEL}","max_tokens":5,"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":${string(JSON.stringify({ path: 'a', text: text(n) }))}}}]},{"role":"tool","tool_call_id":"c1","content":"done"}]}`,
  },
  {
    name: 'input of one tool_use',
    path: '/messages',
    is_legal: true,
    body: (n) =>
      `{"model":"${MODEL}","max_tokens":5,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{"path":"a","text":${string(text(n))}}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"done"}]}]}`,
  },
  {
    name: 'vectors of one text',
    path: '/embeddings',
    is_legal: true,
    body: (n) => `{"model":"sandbox/embed","input":${string(text(n))}}`,
  },
  {
    name: 'vectors of tokens',
    path: '/embeddings',
    is_legal: true,
    body: (n) => `{"model":"sandbox/embed","input":[[${repeated(() => '1234', Math.min(n, 2e6))}]]}`,
  },
  {
    name: 'metadata of many keys',
    path: '/chat/completions',
    is_legal: false,
    body: (n) => chat('"a"', `,"metadata":{${repeated((i) => `"k${i}":"v"`, n)}}`),
  },
  {
    name: 'metadata of the most keys',
    path: '/chat/completions',
    is_legal: false,
    body: () => chat('"a"', `,"metadata":{${repeated((i) => `"k${i}":"v"`, 100_000)}}`),
  },
  {
    name: 'unknown keys',
    path: '/chat/completions',
    is_legal: false,
    body: (n) => chat('"a"', `,${repeated((i) => `"k${i}":1`, n)},"temperature":"hot"`),
  },
  {
    name: 'objects with many keys',
    path: '/chat/completions',
    is_legal: false,
    body: (n) =>
      chat(
        '"a"',
        `,"x":[${repeated((j) => `{${Array.from({ length: 5_000 }, (_, i) => `"k${j}_${i}":1`).join()}}`, Math.min(n, 4.5e6))}]`,
      ),
  },
  {
    name: 'a bad last part',
    path: '/chat/completions',
    is_legal: false,
    body: (n) => chat(`[${repeated(() => '{"type":"text","text":"a"}', Math.min(n, 4e6))},{"type":"x"}]`),
  },
  {
    name: 'a bad last block',
    path: '/messages',
    is_legal: false,
    body: (n) => chat(`[${repeated(() => '{"type":"text","text":"a"}', Math.min(n, 4e6))},{"type":"x"}]`),
  },
  {
    name: 'a bad last item',
    path: '/responses',
    is_legal: false,
    body: (n) =>
      `{"model":"${MODEL}","input":[${repeated(() => '{"role":"user","content":"a"}', Math.min(n, 4e6))},{"role":"user","content":[{}]}]}`,
  },
  {
    name: 'input of many keys',
    path: '/messages',
    is_legal: false,
    body: (n) =>
      chat(`"a"`).replace(
        '"messages":[',
        `"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{${repeated((i) => `"k${i}":1`, Math.min(n, 1e5))}}}]},`,
      ),
  },
  {
    name: 'input of many values',
    path: '/messages',
    is_legal: false,
    body: (n) =>
      chat(`"a"`).replace(
        '"messages":[',
        `"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{"a":[${repeated(() => '{}', Math.min(n, 7e5))}]}}]},`,
      ),
  },
  {
    name: 'values in an unknown field',
    path: '/chat/completions',
    is_legal: false,
    body: (n) => chat('"a"', `,"x":[${repeated(() => '{}', Math.min(n, 7e5))}]`),
  },
  {
    name: 'levels',
    path: '/chat/completions',
    is_legal: false,
    body: (n) => chat('"a"', `,"x":${'['.repeat(n / 2)}${']'.repeat(n / 2)}`),
  },
  {
    name: 'short strings',
    path: '/chat/completions',
    is_legal: false,
    body: (n) => chat('"a"', `,"x":[${repeated(() => `"${'a'.repeat(120)}"`, n)}]`),
  },
  {
    name: 'long numbers',
    path: '/messages',
    is_legal: false,
    body: (n) => chat('"a"', `,"x":[${repeated(() => '1'.repeat(100), n)}]`),
  },
  { name: 'space', path: '/chat/completions', is_legal: false, body: (n) => chat('"a"') + ' '.repeat(n) },
  {
    name: 'a body in single bytes',
    path: '/chat/completions',
    is_legal: false,
    body: (n) => chat(string(text(Math.min(n, 2e6)))),
    piece_bytes: 1,
  },
  ...WIRES.flatMap(shapesOfWire),
  ...soundShapes,
  ...mediaShapes,
  ...probabilityShapes,
  ...filteredShapes,
  ...answerShapes,
  ...furtherShapes,
];
