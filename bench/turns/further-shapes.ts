/** Shapes of every operation besides chat, and of plugins, filters, logs and stored responses. */
import { pdfOf } from '../../test/pdf/hostile.ts';
import { wholeCalls, wholeTexts } from './answers.ts';
import * as answers from './further-answers.ts';
import type { Shape } from './shapes.ts';

const MIB = 1024 * 1024;
const MODEL = 'scripted/openai-chat';
const text = (bytes: number) => 'She said "yes", and\nwalked on. '.repeat(Math.ceil(bytes / 32)).slice(0, bytes);
const string = (value: string) => JSON.stringify(value);
const list = (count: number, make: (at: number) => string) =>
  Array.from({ length: Math.floor(count) }, (_, at) => make(at)).join();
const chat = (content: string, more = '') =>
  `{"model":"${MODEL}","max_tokens":5,"messages":[{"role":"user","content":${content}}]${more}}`;
const short = () => wholeTexts['openai-chat']!(10);
const base = { path: '/chat/completions', is_legal: true, answer: short } as const;
const managed = { is_legal: true, is_managed: true } as const;

/** A PDF of `pages` pages, each with a line of text. */
function pdf(pages: number): string {
  const content = 'BT /F1 12 Tf 20 20 Td (Some text of this page.) Tj ET';
  const kids = list(pages, (at) => `${at * 2 + 4} 0 R`).replaceAll(',', ' ');
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${kids}] /Count ${pages} >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
  ];
  for (let at = 0; at < pages; at += 1) {
    objects.push(
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents ${at * 2 + 5} 0 R /Resources << /Font << /F1 3 0 R >> >> >>`,
      `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
    );
  }
  return pdfOf(objects).toString('base64');
}
const PDF_PAGE_CHARS = 460;
const filePart = (data: string) =>
  `[{"type":"text","text":"a"},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,${data}"}}]`;
const spaced = (bytes: number) => 'iVBORw0KGgoAAAANSUhEUgAA\\n'.repeat(bytes / 26);
const levels = (bytes: number) => `{"a":${'['.repeat(bytes / 2)}${']'.repeat(bytes / 2)}}`;
const callWith = (path: string, args: string) =>
  path === '/messages'
    ? `{"model":"${MODEL}","max_tokens":5,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":${args}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"done"}]}]}`
    : `{"model":"scripted/anthropic-messages","max_tokens":5,"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":${string(args)}}}]},{"role":"tool","tool_call_id":"c1","content":"done"}]}`;
const schemaOf = (bytes: number) =>
  `{"type":"object","properties":{${list(Math.min(bytes, 7.9 * MIB) / 90, (at) => `"field_${at}":{"type":"string","description":"What field ${at} is of, in so many words."}`)}}}`;
const formOf = (fields: string, file: string) =>
  `--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nsandbox/transcribe\r\n${fields}--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n${file}\r\n--b--\r\n`;

const requests: readonly Shape[] = [
  {
    ...base,
    name: 'base64 with line ends',
    body: (n) => chat(`[{"type":"image_url","image_url":{"url":"data:image/png;base64,${spaced(n)}"}}]`),
  },
  {
    ...base,
    name: 'base64 with line ends for Gemini, with a limit',
    is_limited: true,
    answer: () => wholeTexts['gemini-generate-content']!(10),
    body: (n) =>
      chat(`[{"type":"image_url","image_url":{"url":"data:image/png;base64,${spaced(n)}"}}]`).replace(
        MODEL,
        'scripted/gemini-generate-content',
      ),
  },
  { ...base, name: 'escapes', body: (n) => chat(`"${'\\u0007'.repeat(n / 6)}"`) },
  {
    ...base,
    name: 'a prompt of escapes, streamed',
    answer: () => answers.wholeEscapes(4e6),
    body: () => chat('"a"', ',"stream":true'),
  },
  {
    ...base,
    name: 'levels in arguments for Anthropic',
    answer: () => wholeTexts['anthropic-messages']!(10),
    body: (n) => callWith('/chat/completions', levels(n)),
  },
  {
    ...base,
    name: 'values in arguments for Anthropic',
    answer: () => wholeTexts['anthropic-messages']!(10),
    body: (n) => callWith('/chat/completions', `{"a":[${list(Math.min(n / 3, 99_000), () => '{}')}]}`),
  },
  {
    ...base,
    name: 'a long text in arguments for Anthropic',
    answer: () => wholeTexts['anthropic-messages']!(10),
    body: (n) => callWith('/chat/completions', `{"a":${string(text(Math.min(n, 15e6)))}}`),
  },
  {
    ...base,
    name: 'a long text in an input of /messages',
    path: '/messages',
    body: (n) => callWith('/messages', `{"a":${string(text(n))}}`),
  },
  {
    ...base,
    name: 'a schema of the answer',
    body: (n) =>
      chat('"a"', `,"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":${schemaOf(n)}}}`),
  },
  {
    ...base,
    name: 'a schema of the answer, repaired',
    answer: () => wholeTexts['openai-chat']!(2e6),
    body: (n) =>
      chat(
        '"a"',
        `,"plugins":[{"id":"response-healing"}],"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":${schemaOf(n)}}}`,
      ),
  },
  {
    ...base,
    name: 'a PDF of many pages, read',
    body: (n) =>
      chat(
        filePart(pdf(Math.min(n, 25e6) / PDF_PAGE_CHARS)),
        ',"plugins":[{"id":"file-parser","pdf":{"engine":"text"}}]',
      ),
  },
  { ...base, name: 'a PDF of many pages', body: (n) => chat(filePart(pdf(Math.min(n, 25e6) / PDF_PAGE_CHARS))) },
  {
    ...base,
    name: 'a text file',
    body: (n) =>
      chat(
        `[{"type":"file","file":{"filename":"a.txt","file_data":"data:text/plain;base64,${Buffer.from(text(n * 0.7)).toString('base64')}"}}]`,
      ),
  },
  {
    ...base,
    name: 'a compressed conversation',
    body: (n) =>
      `{"model":"${MODEL}","transforms":["middle-out"],"messages":[${list(5_000, () => `{"role":"user","content":${string(text(n / 5_000))}}`)}]}`,
  },
  {
    ...base,
    name: 'compression by plugin',
    body: (n) =>
      `{"model":"${MODEL}","plugins":[{"id":"context-compression"}],"messages":[${list(5_000, () => `{"role":"user","content":${string(text(n / 5_000))}}`)}]}`,
  },
  { ...base, name: 'many models', body: (n) => chat('"a"', `,"models":[${list(n / 12, (at) => `"a/b${at}"`)}]`) },
  {
    ...base,
    name: 'many providers',
    body: (n) => chat('"a"', `,"provider":{"order":[${list(n / 8, (at) => `"p${at}"`)}]}`),
  },
  { ...base, name: 'many stop sequences', body: (n) => chat('"a"', `,"stop":[${list(n / 8, (at) => `"s${at}"`)}]`) },
  {
    ...base,
    name: 'many biases',
    body: (n) => chat('"a"', `,"logit_bias":{${list(Math.min(n / 12, 10_000), (at) => `"${at}":1`)}}`),
  },
  { ...base, name: 'a filtered prompt', is_filtered: true, body: (n) => chat(string(text(n))) },
  {
    ...base,
    name: 'a filtered prompt of findings',
    is_filtered: true,
    body: (n) => chat(`"${'ada@example.com, '.repeat(n / 17)}"`),
  },
  {
    ...base,
    name: 'filtered parts',
    is_filtered: true,
    body: (n) => chat(`[${list(Math.min(n / 40, 49_000), () => '{"type":"text","text":"4111 1111 1111 1111"}')}]`),
  },
  {
    ...base,
    name: 'filtered values of a schema',
    is_filtered: true,
    body: (n) =>
      chat('"a"', `,"tools":[{"type":"function","function":{"name":"f","parameters":${schemaOf(Math.min(n, 3e6))}}}]`),
  },
  { ...base, name: 'a logged prompt', is_logged: true, body: (n) => chat(string(text(n))) },
  {
    ...base,
    name: 'logged parts',
    is_logged: true,
    body: (n) => chat(`[${list(Math.min(n / 26, 49_000), () => '{"type":"text","text":"a"}')}]`),
  },
  {
    ...base,
    name: 'logged values',
    is_logged: true,
    body: (n) => chat('"a"', `,"x":[${list(Math.min(n / 3, 400_000), () => '{}')}]`),
  },
  {
    ...base,
    name: 'a logged image',
    is_logged: true,
    body: (n) =>
      chat(
        `[{"type":"image_url","image_url":{"url":"data:image/png;base64,${'iVBORw0KGgoAAAANSUhEUgAA'.repeat(n / 24)}"}}]`,
      ),
  },
  {
    ...base,
    name: 'a stored prompt',
    path: '/responses',
    body: (n) => `{"model":"${MODEL}","store":true,"input":${string(text(Math.min(n, 7.5e6)))}}`,
  },
  {
    ...base,
    name: 'stored items',
    path: '/responses',
    body: (n) =>
      `{"model":"${MODEL}","store":true,"input":[${list(Math.min(n / 29, 9_900), () => `{"role":"user","content":${string(text(Math.min(n, 7e6) / 9_900))}}`)}]}`,
  },
  {
    ...base,
    name: 'a prompt that is too long to store',
    path: '/responses',
    body: (n) => `{"model":"${MODEL}","store":true,"input":${string(text(n))}}`,
  },
  { ...base, name: 'a counted prompt', path: '/messages/count_tokens', body: (n) => chat(string(text(n))) },
  {
    ...base,
    name: 'counted parts',
    path: '/messages/count_tokens',
    body: (n) => chat(`[${list(Math.min(n / 26, 49_000), () => '{"type":"text","text":"a"}')}]`),
  },
  {
    ...base,
    name: 'a sound in a chat',
    body: (n) =>
      chat(
        `[{"type":"input_audio","input_audio":{"format":"mp3","data":"${Buffer.alloc(n * 0.7, '\xff\xf3\x14\xc4', 'latin1').toString('base64')}"}}]`,
      ),
  },
  {
    ...base,
    name: 'prompts of /completions',
    path: '/completions',
    body: (n) => `{"model":"${MODEL}","prompt":[${list(n / 6, () => '"aa"')}]}`,
  },
  {
    ...base,
    name: 'one prompt of /completions',
    path: '/completions',
    body: (n) => `{"model":"${MODEL}","prompt":${string(text(n))}}`,
  },
  { ...base, name: 'explained routing', path: '/route/explain', body: (n) => `{"request":${chat(string(text(n)))}}` },
];

const vectors: readonly Shape[] = [
  {
    ...base,
    name: '100,000 inputs',
    path: '/embeddings',
    is_legal: false,
    body: (n) => `{"model":"scripted/vectors","input":[${list(Math.min(n / 5, 100_000), () => '"ab"')}]}`,
  },
  {
    ...base,
    name: '10,000 inputs',
    path: '/embeddings',
    answer: (n) => answers.vectors(10_000, Math.min(n, 60 * MIB)),
    body: () => `{"model":"scripted/vectors","input":[${list(10_000, () => '"ab"')}]}`,
  },
  {
    ...base,
    name: '2,000 inputs',
    path: '/embeddings',
    answer: (n) => answers.vectors(2_000, Math.min(n, 60 * MIB)),
    body: () => `{"model":"scripted/vectors","input":[${list(2_000, () => '"ab"')}]}`,
  },
  {
    ...base,
    name: '2,000 inputs as base64',
    path: '/embeddings',
    answer: (n) => answers.vectors(2_000, Math.min(n, 60 * MIB)),
    body: () => `{"model":"scripted/vectors","encoding_format":"base64","input":[${list(2_000, () => '"ab"')}]}`,
  },
  {
    ...base,
    name: '10,000 inputs of parts',
    path: '/embeddings',
    answer: (n) => answers.vectors(10_000, Math.min(n, 60 * MIB)),
    body: () =>
      `{"model":"scripted/vectors","input":[${list(10_000, () => '{"content":[{"type":"text","text":"a"}]}')}]}`,
  },
  {
    ...base,
    name: 'tokens of 10,000 inputs',
    path: '/embeddings',
    answer: (n) => answers.vectors(10_000, Math.min(n, 60 * MIB)),
    body: (n) =>
      `{"model":"scripted/vectors","input":[${list(10_000, () => `[${list(Math.min(n / 5e4, 45), () => '1234')}]`)}]}`,
  },
];

const management: readonly Shape[] = [
  { ...managed, name: 'managed: a key', path: '/keys', body: (n) => `{"name":${string(text(n))}}` },
  {
    ...managed,
    name: 'managed: unknown fields of a key',
    path: '/keys',
    body: (n) => `{"name":"a",${list(Math.min(n / 12, 9_000), (at) => `"k${at}":1`)}}`,
  },
  {
    ...managed,
    name: 'managed: a workspace',
    path: '/workspaces',
    body: (n) => `{"name":"a","slug":${string(text(n))}}`,
  },
  {
    ...managed,
    name: 'managed: filters',
    path: '/guardrails',
    body: () =>
      `{"name":"f","content_filters":[${list(100, (at) => `{"pattern":"(a|b${at}){1,50}c{1,50}[a-z0-9]{1,80}","action":"block"}`)}]}`,
  },
  {
    ...managed,
    name: 'managed: lists of a guardrail',
    path: '/guardrails',
    body: (n) => `{"name":"f","allowed_models":[${list(n / 12, (at) => `"a/b${at}"`)}]}`,
  },
  {
    ...managed,
    name: 'managed: tested text',
    path: '/guardrails/test',
    body: (n) =>
      `{"guardrail":{"content_filter_builtins":[{"slug":"email","action":"redact"},{"slug":"credit-card","action":"redact"},{"slug":"phone","action":"flag"}]},"text":${string(text(n))}}`,
  },
  {
    ...managed,
    name: 'managed: tested findings',
    path: '/guardrails/test',
    body: (n) =>
      `{"guardrail":{"content_filter_builtins":[{"slug":"email","action":"redact"}]},"text":"${'ada@example.com, '.repeat(n / 17)}"}`,
  },
  {
    ...managed,
    name: 'managed: a tested request',
    path: '/guardrails/test',
    body: (n) =>
      `{"guardrail":{"content_filter_builtins":[{"slug":"email","action":"redact"}]},"request":${chat(`[${list(n / 50, () => '{"type":"text","text":"ada@example.com"}')}]`)}}`,
  },
  {
    ...managed,
    name: 'managed: an analysis',
    path: '/analytics/query',
    body: (n) => `{"metrics":[${list(n / 8, (at) => `"m${at}"`)}]}`,
  },
  {
    ...managed,
    name: 'managed: a credential',
    path: '/byok',
    body: (n) => `{"provider":"openai","key":${string(text(n))}}`,
  },
  {
    ...managed,
    name: 'managed: assignments',
    path: '/guardrails/a/assignments/keys',
    body: (n) => `{"key_hashes":[${list(n / 70, (at) => `"${String(at).padStart(64, '0')}"`)}]}`,
  },
  {
    is_legal: false,
    name: 'a code',
    path: '/auth/keys/code',
    body: (n) =>
      `{"callback_url":${string(`https://a.example/${'a'.repeat(n)}`)},"code_challenge":"${'a'.repeat(n / 2)}"}`,
  },
  { is_legal: false, name: 'an exchange', path: '/auth/keys', body: (n) => `{"code":${string(text(n))}}` },
  {
    is_legal: false,
    name: 'fields of a form',
    path: '/audio/transcriptions',
    content_type: 'multipart/form-data; boundary=b',
    body: () =>
      formOf(
        Array.from(
          { length: 97 },
          (_, at) => `--b\r\ncontent-disposition: form-data; name="f${at}"\r\n\r\n${'a'.repeat(65_000)}\r\n`,
        ).join(''),
        'a',
      ),
  },
  {
    is_legal: false,
    name: 'parts of a form',
    path: '/audio/transcriptions',
    content_type: 'multipart/form-data; boundary=b',
    body: (n) => formOf('--b\r\ncontent-disposition: form-data; name="f"\r\n\r\n\r\n'.repeat(n / 52), 'a'),
  },
];

const CLIENTS = ['/chat/completions', '/messages', '/responses'] as const;
function asks(path: string, model: string, stream: boolean, more = ''): string {
  return path === '/responses'
    ? `{"model":"${model}","input":"a","stream":${stream}${more}}`
    : `{"model":"${model}","max_tokens":5,"messages":[{"role":"user","content":"a"}],"stream":${stream}${more}}`;
}
const answered = (
  name: string,
  model: string,
  answer: (bytes: number) => Buffer,
  {
    streams = [false, true],
    paths = CLIENTS,
    more = '',
    ...of
  }: { streams?: boolean[]; paths?: readonly string[]; more?: string } & Partial<Shape> = {},
): Shape[] =>
  paths.flatMap((path) =>
    streams.map((stream) => ({
      name: `further answer: ${name} to ${path}${stream ? ', streamed' : ''}`,
      path,
      is_legal: true,
      body: () => asks(path, model, stream, more),
      answer,
      ...of,
    })),
  );

const answerShapes: readonly Shape[] = [
  ...answered('arguments in single characters', MODEL, answers.argumentsInCharacters, { streams: [true] }),
  ...answered(
    'arguments in single characters, Anthropic',
    'scripted/anthropic-messages',
    answers.anthropicArgumentsInCharacters,
    { streams: [true] },
  ),
  ...answered('many choices', MODEL, answers.manyChoices, {
    paths: ['/chat/completions'],
    streams: [true],
    more: ',"n":128',
  }),
  ...answered('many whole choices', MODEL, answers.wholeChoices, {
    paths: ['/chat/completions'],
    streams: [false],
    more: ',"n":128',
  }),
  ...answered('long annotations', MODEL, answers.longAnnotations),
  ...answered('a file in annotations', MODEL, answers.longFile),
  ...answered('citations of Anthropic', 'scripted/anthropic-messages', answers.anthropicCitations),
  ...answered('levels in arguments', MODEL, answers.deepArguments),
  ...answered('values in arguments', MODEL, answers.wideArguments),
  ...answered('escapes', MODEL, answers.wholeEscapes),
  ...answered('parts of reasoning', MODEL, answers.reasoningDetails),
  ...answered('encrypted reasoning', MODEL, answers.encryptedReasoning),
  ...answered('parts of Gemini', 'scripted/gemini-generate-content', answers.geminiParts),
  ...answered('short thoughts of Anthropic', 'scripted/anthropic-messages', answers.anthropicThoughts, {
    streams: [true],
  }),
  ...answered('unknown fields', MODEL, answers.unknownFields),
  ...answered('native items', 'scripted/openai-responses', answers.nativeItems),
  ...answered('a logged text', MODEL, wholeTexts['openai-chat']!, { is_logged: true }),
  ...answered('logged calls', MODEL, wholeCalls['openai-chat']!, { is_logged: true }),
  ...answered('a stored text', MODEL, wholeTexts['openai-chat']!, { paths: ['/responses'], more: ',"store":true' }),
  ...answered('stored calls', MODEL, wholeCalls['openai-chat']!, { paths: ['/responses'], more: ',"store":true' }),
  ...answered('an error', MODEL, answers.longError, { streams: [false] }),
];

export const furtherShapes: readonly Shape[] = [...requests, ...vectors, ...management, ...answerShapes];
