/** Bodies of a length: the worst that a caller may send, and large ones of ordinary callers. */

export interface Shape {
  name: string;
  /** Without `/api/v1`. */
  path: string;
  is_legal: boolean;
  body(bytes: number): string;
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
        `,"tools":[${Array.from({ length: TOOLS }, (_, i) => `{"type":"function","function":{"name":"f${i}","description":"Does a thing","parameters":${schema(Math.max(50, Math.min(n, 20e6) / TOOLS - 100))}}}`).join()}]`,
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
];
