import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { chatClient } from '../../api/chat/client.ts';
import { messagesClient } from '../../api/messages/client.ts';
import { limits } from '../../limits.ts';
import type { BoundGuardrail, BuiltinFilter, CustomFilter } from '../../schemas/guardrail.ts';
import type { ChatRequest, Message } from '../../schemas/inner.ts';
import { decodeText } from '../../schemas/text-file.ts';
import type { Entity } from '../entities/analyzer.ts';
import { filterSetOf } from '../policy/filter-set.ts';
import { UNRESTRICTED } from '../policy/guardrail.ts';
import { createNumbering } from '../redaction.ts';
import { createRestorer } from '../restorer.ts';
import { requestTexts } from './request-texts.ts';
import { type Screener, screen } from './screen.ts';

const EMAIL = 'jane.doe@example.com';

function guardrailOf(builtins: BuiltinFilter[], custom: CustomFilter[] = [], reversible = false): BoundGuardrail {
  return {
    id: 'g',
    scope: 'api-key',
    ...UNRESTRICTED,
    content_filter_builtins: builtins,
    content_filters: custom,
    content_filter_reversible: reversible,
  };
}

function screenerOf(guardrail: BoundGuardrail, more: Partial<Screener> = {}): Screener {
  const guardrails = [guardrail];
  const numbering = createNumbering();
  return { set: filterSetOf(guardrails)!, guardrails, numbering, pause: async () => {}, ...more };
}

const emails = guardrailOf([{ slug: 'email', action: 'redact' }]);

const one = (text: string, screener: Screener) =>
  screen((visit) => visit(text, { field: 'text', kind: 'text' }), screener).then(({ subject }) => subject);

async function messagesOf(messages: Message[], guardrail: BoundGuardrail, keepsSignatures = false): Promise<Message[]> {
  const request: ChatRequest = { messages };
  const screener = screenerOf(guardrail);
  const { subject } = await screen(
    (visit) => requestTexts(request, { visit, keeps_signatures: keepsSignatures }),
    screener,
  );
  return subject.messages;
}

describe('a long text', () => {
  const { scan_slice_chars, scan_overlap_chars } = limits;

  test('is filtered at the borders of its scanned pieces', async () => {
    const screener = screenerOf(emails);
    const filler = 'word '.repeat(scan_slice_chars / 2);
    for (const border of [scan_slice_chars, 2 * scan_slice_chars - scan_overlap_chars, 2 * scan_slice_chars]) {
      for (let back = 0; back <= EMAIL.length + 2; back += 1) {
        const at = border - back;
        const text = `${filler.slice(0, at - 1)} ${EMAIL} ${filler.slice(0, scan_slice_chars)}`;
        const filtered = await one(text, screener);
        expect(filtered).toBe(text.replace(EMAIL, '[EMAIL]'));
      }
    }
  });

  test('is scanned with pauses', async () => {
    let pauses = 0;
    const pause = async () => {
      pauses += 1;
    };
    await one('x '.repeat(5 * scan_slice_chars), screenerOf(emails, { pause }));
    expect(pauses).toBeGreaterThanOrEqual(10);
    pauses = 0;
    const many = Array.from({ length: 3_000 }, (_, at) => `text ${at} ${'y '.repeat(50)}`);
    await screen(
      (visit) => many.map((text) => visit(text, { field: 'f', kind: 'text' })),
      screenerOf(emails, { pause }),
    );
    expect(pauses).toBeGreaterThanOrEqual(4);
  });

  test('starts and ends for patterns at its own ends, not at those of its pieces', async () => {
    const ends = guardrailOf([], [{ pattern: '^zebra|zebra$', action: 'redact' }]);
    const filler = 'word '.repeat(scan_slice_chars);
    for (const at of [scan_slice_chars - scan_overlap_chars, scan_slice_chars + scan_overlap_chars - 5]) {
      const text = `zebra${filler.slice(5, at)}zebra${filler.slice(0, scan_slice_chars)}zebra`;
      const filtered = await one(text, screenerOf(ends));
      expect(filtered).toBe(`[REDACTED]${text.slice(5, -5)}[REDACTED]`);
    }
  });

  test('of JSON, or with many matches, is scanned with pauses too', async () => {
    const addresses = Array.from({ length: 30_000 }, (_, at) => `a${at}@example.com`);
    for (const [text, kind] of [
      [JSON.stringify(addresses), 'json'],
      [addresses.join(' '), 'text'],
    ] as const) {
      let pauses = 0;
      const pause = async () => {
        pauses += 1;
      };
      const { subject } = await screen((visit) => visit(text, { field: 'f', kind }), screenerOf(emails, { pause }));
      expect(subject).toBe(text.replace(/a\d+@example\.com/g, '[EMAIL]'));
      expect(pauses).toBeGreaterThanOrEqual(12);
    }
  });
});

test.each([
  [`{"a":"${EMAIL}","a":"x"}`, '{"a":"[EMAIL]","a":"x"}'],
  [`{"a":{"b":"${EMAIL}"},"a":1}`, '{"a":{"b":"[EMAIL]"},"a":1}'],
  ['{"a":"jane\\u0040example.com",}', '{"a":"[EMAIL]",}'],
  ['["jane\\u0040example.com"', '["[EMAIL]"'],
  ['```json\n{"a":"jane\\u0040example.com"}\n```', '```json\n{"a":"[EMAIL]"}\n```'],
  ['{"a":"x"}\n{"a":"jane\\u0040example.com"}', '{"a":"x"}\n{"a":"[EMAIL]"}'],
  ['{"a":"{\\"b\\":\\"jane.doe\\\\u0040example.com\\"}"}', '{"a":"{\\"b\\":\\"[EMAIL]\\"}"}'],
  [`{"a" : "x\\"${EMAIL}\\\\", "b" : 12345678901234567890}`, '{"a" : "x\\"[EMAIL]\\\\", "b" : 12345678901234567890}'],
])('arguments and results of tools are filtered: %s', async (json, wanted) => {
  const messages: Message[] = [
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: json } }],
    },
    { role: 'tool', tool_call_id: 'c', content: json },
  ];
  const [call, result] = await messagesOf(messages, emails);
  expect(call).toMatchObject({ tool_calls: [{ function: { arguments: wanted } }] });
  expect(result).toMatchObject({ content: wanted });
});

test('a request without findings is the same object', async () => {
  const request: ChatRequest = {
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }],
    tools: [
      {
        type: 'function',
        function: { name: 'f', parameters: { type: 'object', properties: { a: { type: 'string' } } } },
      },
    ],
    metadata: { a: 'b' },
    ext: { wire: 'anthropic-messages', client: messagesClient, rest: { container: 'c' } },
  };
  const { subject, matches } = await screen(
    (visit) => requestTexts(request, { visit, keeps_signatures: false }),
    screenerOf(emails),
  );
  expect(subject).toBe(request);
  expect(matches).toEqual([]);
});

test('names are found in the strings of JSON', async () => {
  const names = guardrailOf([{ slug: 'person-name', action: 'redact' }]);
  const analyze = async (texts: readonly string[]): Promise<Entity[][]> =>
    texts.map((text) => (text === 'Jane' ? [{ start: 0, end: 4, slug: 'person-name' as const }] : []));
  const { subject } = await screen(
    (visit) => visit('{"a": ["J\\u0061ne", "x"]}', { field: 'f', kind: 'json' }),
    screenerOf(names, { analyze }),
  );
  expect(subject).toBe('{"a": ["[PERSON_NAME]", "x"]}');
});

test('the parts of a tool result are read as one text', async () => {
  const content = ['mail jane.doe@exam', 'ple.com or {', '"a":1}'].map((text) => ({ type: 'text' as const, text }));
  const [message] = await messagesOf([{ role: 'tool', tool_call_id: 'c', content }], emails);
  expect((message!.content as { text: string }[]).map(({ text }) => text)).toEqual([
    'mail [EMAIL]',
    '[EMAIL] or {',
    '"a":1}',
  ]);
});

test('a text file is filtered whatever its declared type', async () => {
  const file = (type: string, bytes: string) =>
    `data:${type};base64,${Buffer.from(bytes, 'latin1').toString('base64')}`;
  const content = `Write to ${EMAIL}. ${'x'.repeat(200)}`;
  const url = async (type: string, bytes: string) => {
    const part = { type: 'image_url' as const, image_url: { url: file(type, bytes) } };
    const [message] = await messagesOf([{ role: 'user', content: [part] }], emails);
    return (message!.content as (typeof part)[])[0]!.image_url.url;
  };
  for (const type of ['image/png', 'application/pdf', 'audio/wav']) {
    expect(await url(type, content)).toBe(file(type, content.replace(EMAIL, '[EMAIL]')));
    for (const bytes of [`\x89PNG\r\n\x1a\n\0\0${content}`, `%PDF-1.7\n${content}`, `RIFF\xff\xff\0\0WAVE${content}`]) {
      expect(await url(type, bytes)).toBe(file(type, bytes));
    }
  }
});

describe('a file in an encoding other than Unicode', () => {
  const fileOf = async (type: string, bytes: Buffer, guardrail = emails) => {
    const fileData = `data:${type};base64,${bytes.toString('base64')}`;
    const messages: Message[] = [{ role: 'user', content: [{ type: 'file', file: { file_data: fileData } }] }];
    const [message] = await messagesOf(messages, guardrail);
    const { file } = (message!.content as { file: { file_data: string } }[])[0]!;
    return Buffer.from(file.file_data.slice(file.file_data.indexOf(',') + 1), 'base64');
  };
  const content = `Z\xfcrich, ${EMAIL}, 5 \x80. ${'x'.repeat(200)}`;
  const latin = Buffer.from(content, 'latin1');

  test.each(['text/csv', 'application/json', 'application/xml', 'application/octet-stream', 'message/rfc822'])(
    'of %s is filtered, and its other letters stay',
    async (type) => {
      expect((await fileOf(type, latin)).toString('latin1')).toBe(content.replace(EMAIL, '[EMAIL]'));
    },
  );

  test('with a NUL is filtered if its type is a text type', async () => {
    const odd = Buffer.concat([Buffer.from('a\0\xff', 'latin1'), latin]);
    for (const type of ['application/json', 'text/plain']) {
      expect((await fileOf(type, odd)).includes(EMAIL)).toBe(false);
    }
    expect((await fileOf('application/octet-stream', odd)).equals(odd)).toBe(true);
  });

  test('is not filtered if it is a PDF', async () => {
    const pdf = Buffer.concat([Buffer.from('\n%PDF-1.4\n'), latin]);
    expect((await fileOf('application/octet-stream', pdf)).equals(pdf)).toBe(true);
  });

  test.each([
    ['windows-1252', Buffer.from('Z\xfcrich, O\x92Brien', 'latin1')],
    ['UTF-8 with an invalid byte', Buffer.concat([Buffer.from('Zürich, O’Brien'), Buffer.from([0xff])])],
  ])('of %s is decoded with the same letters as for models', async (_, bytes) => {
    const names = ['Zürich', 'O’Brien'].map((pattern): CustomFilter => ({ pattern, action: 'redact', label: 'NAME' }));
    const filtered = await fileOf('text/csv', bytes, guardrailOf([], names));
    expect(decodeText(filtered)).toBe(decodeText(bytes).replace('Zürich', '[NAME]').replace('O’Brien', '[NAME]'));
  });

  test('of UTF-16 without a byte order mark is filtered', async () => {
    for (const wide of [Buffer.from(content, 'utf16le'), Buffer.from(content, 'utf16le').swap16()]) {
      expect((await fileOf('text/csv;charset=utf-16', wide)).toString()).toBe(content.replace(EMAIL, '[EMAIL]'));
    }
  });
});

test.each([
  ['https://cdn.example.com/p/4111111111111111.jpg', false],
  ['https://cdn.example.com/p/4111-1111-1111-1111.jpg', true],
  ['https://cdn.example.com/p.jpg?card=4111111111111111', true],
  ['https://cdn.example.com/p.jpg?u=jane.doe%40example.com', true],
  ['https://cdn.example.com/%zz/p.jpg', false],
])('a URL is refused for its text, and not for an id in it: %s', async (url, isRefused) => {
  const both = guardrailOf([
    { slug: 'email', action: 'redact' },
    { slug: 'credit-card', action: 'redact' },
  ]);
  const messages: Message[] = [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }];
  const { refusal, subject } = await screen(
    (visit) => requestTexts({ messages }, { visit, keeps_signatures: false }),
    screenerOf(both),
  );
  expect(refusal !== undefined).toBe(isRefused);
  expect(JSON.stringify(subject)).not.toMatch(/jane|4111-1111|=4111/);
  if (!isRefused) expect(subject.messages).toBe(messages);
});

test('text with only flagged matches is unchanged', async () => {
  const flags = guardrailOf([
    { slug: 'email', action: 'flag' },
    { slug: 'credit-card', action: 'redact' },
  ]);
  const content = 'jane.doe\\u0040example.com';
  const [first, second] = await messagesOf(
    [
      { role: 'user', content },
      { role: 'assistant', content: '4111 1111 1111 1111' },
    ],
    flags,
  );
  expect([first?.content, second?.content]).toEqual([content, '[CREDIT_CARD]']);
});

test('names of fields with long numbers are filtered', async () => {
  const cards = guardrailOf([], [{ pattern: 'CANARY[0-9]{6}', action: 'redact' }]);
  const request = {
    messages: [],
    ext: { wire: 'openai-chat', client: chatClient, rest: { bar: { CANARY123456: 1 } } },
  };
  const { refusal } = await screen(
    (visit) => requestTexts(request as unknown as ChatRequest, { visit, keeps_signatures: false }),
    screenerOf(cards),
  );
  expect(refusal).toMatchObject({ field: 'bar', is_pinned: true });
});

test('a match over several parts is found at any split', async () => {
  const cards = guardrailOf([{ slug: 'credit-card', action: 'redact' }]);
  const text = 'My card is 4111 1111 1111 1111, thanks.';
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(fc.integer({ min: 1, max: text.length - 1 }), { maxLength: 4 }), async (cuts) => {
      const ends = [0, ...cuts.sort((a, b) => a - b), text.length];
      const parts = ends.slice(1).map((end, at) => ({ type: 'text' as const, text: text.slice(ends[at], end) }));
      const [message] = await messagesOf([{ role: 'user', content: parts }], cards);
      const filtered = (message!.content as { text: string }[]).map((part) => part.text).join('');
      expect(filtered).not.toMatch(/\d/);
      expect(filtered.replace(/(\[CREDIT_CARD\])+/, 'X')).toBe('My card is X, thanks.');
    }),
    { numRuns: 200 },
  );
});

describe('signed reasoning', () => {
  const details = [{ type: 'reasoning.text' as const, text: `Of ${EMAIL}`, signature: 'c2lnbmF0dXJl' }];
  const turn: Message[] = [{ role: 'assistant', content: 'Yes.', reasoning_details: details }];

  test('loses its signature if it is changed', async () => {
    const [message] = await messagesOf(turn, emails);
    expect(message?.reasoning_details).toEqual([{ type: 'reasoning.text', text: 'Of [EMAIL]' }]);
  });

  test('keeps its signature if it is restored later', async () => {
    const reversible = guardrailOf([{ slug: 'email', action: 'redact' }], [], true);
    const [message] = await messagesOf(turn, reversible, true);
    expect(message?.reasoning_details).toEqual([{ ...details[0], text: 'Of [EMAIL_1]' }]);
  });

  test('is unchanged without findings', async () => {
    const [message] = await messagesOf([{ ...turn[0]!, reasoning_details: [{ ...details[0]!, text: 'Hm.' }] }], emails);
    expect(message?.reasoning_details).toEqual([{ ...details[0], text: 'Hm.' }]);
  });
});

test('ids with matches are replaced, equally for a call and its result', async () => {
  const id = `call_${EMAIL}`;
  const filtered = await messagesOf(
    [
      { role: 'assistant', tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: '{}' } }] },
      { role: 'tool', tool_call_id: id, content: 'x' },
    ],
    emails,
  );
  expect(filtered[0]?.tool_calls?.[0]?.id).toMatch(/^call_[0-9a-f]{24}$/);
  expect(filtered[1]?.tool_call_id).toBe(filtered[0]?.tool_calls?.[0]?.id);
});

test('keywords of the wire are not filtered', async () => {
  const words = guardrailOf([], [{ pattern: 'text|user|function|string|image_url|object', action: 'block' }]);
  const request: ChatRequest = {
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }],
    tools: [
      {
        type: 'function',
        function: { name: 'f', parameters: { type: 'object', properties: { a: { type: 'string' } } } },
      },
    ],
  };
  const subject = (visit: Parameters<Parameters<typeof screen>[0]>[0]) =>
    requestTexts(request, { visit, keeps_signatures: false });
  expect((await screen(subject, screenerOf(words))).refusal).toBeUndefined();
});

test('names of properties stay equal in a schema, its required list and its references', async () => {
  const parameters = {
    type: 'object',
    properties: { [EMAIL]: { $ref: `#/$defs/${EMAIL}` } },
    required: [EMAIL],
    $defs: { [EMAIL]: { type: 'string', description: `Like ${EMAIL}.` } },
  };
  const request: ChatRequest = { messages: [], tools: [{ type: 'function', function: { name: 'f', parameters } }] };
  const { subject } = await screen(
    (visit) => requestTexts(request, { visit, keeps_signatures: false }),
    screenerOf(emails),
  );
  expect(subject.tools?.[0]).toMatchObject({
    function: {
      parameters: {
        properties: { '[EMAIL]': { $ref: '#/$defs/[EMAIL]' } },
        required: ['[EMAIL]'],
        $defs: { '[EMAIL]': { type: 'string', description: 'Like [EMAIL].' } },
      },
    },
  });
});

test('keys that become equal are numbered', async () => {
  const args = JSON.stringify({ [EMAIL]: 1, 'bob@example.org': 2 });
  const filtered = await messagesOf(
    [{ role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: args } }] }],
    emails,
  );
  expect(JSON.parse(filtered[0]!.tool_calls![0]!.function.arguments)).toEqual({ '[EMAIL]': 1, '[EMAIL] 2': 2 });
});

test('too deeply nested JSON is filtered as text', async () => {
  const deep = `${'['.repeat(100_000)}"${EMAIL}"${']'.repeat(100_000)}`;
  const filtered = await messagesOf(
    [{ role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: deep } }] }],
    emails,
  );
  expect(filtered[0]!.tool_calls![0]!.function.arguments).toBe(deep.replace(EMAIL, '[EMAIL]'));
});

describe('names and addresses', () => {
  const names = guardrailOf([
    { slug: 'person-name', action: 'redact' },
    { slug: 'email', action: 'redact' },
  ]);
  const analyze = async (texts: readonly string[]): Promise<Entity[][]> =>
    texts.map((text) =>
      [...text.matchAll(/Jane Doe/g)].map(({ index }) => ({
        start: index,
        end: index + 8,
        slug: 'person-name' as const,
      })),
    );

  test('from an analyzer are redacted with the matches of filters', async () => {
    const filtered = await one(`Jane Doe (${EMAIL}), Jane Doe`, screenerOf(names, { analyze }));
    expect(filtered).toBe('[PERSON_NAME] ([EMAIL]), [PERSON_NAME]');
  });

  test('are analyzed once per text, and not in ids', async () => {
    const analyzed: string[] = [];
    const screener = screenerOf(names, {
      analyze: (texts) => {
        analyzed.push(...texts);
        return analyze(texts);
      },
    });
    await screen(
      (visit) => [
        visit('Jane Doe', { field: 'a', kind: 'text' }),
        visit('Jane Doe', { field: 'b', kind: 'text' }),
        visit('call_Jane', { field: 'c', kind: 'link' }),
      ],
      screener,
    );
    expect(analyzed).toEqual(['Jane Doe']);
  });
});

test('reversible placeholders are numbered in the order of the texts', async () => {
  const numbering = createNumbering();
  const screener = screenerOf(guardrailOf([{ slug: 'email', action: 'redact' }], [], true), { numbering });
  expect(await one(`b@x.org a@x.org b@x.org`, screener)).toBe('[EMAIL_1] [EMAIL_2] [EMAIL_1]');
  expect(await one(`c@x.org a@x.org`, screener)).toBe('[EMAIL_3] [EMAIL_2]');
  expect(Object.fromEntries(numbering.values)).toEqual({
    '[EMAIL_1]': 'b@x.org',
    '[EMAIL_2]': 'a@x.org',
    '[EMAIL_3]': 'c@x.org',
  });
});

test('a placeholder in the client’s own text is not used for another value', async () => {
  const screener = screenerOf(guardrailOf([{ slug: 'email', action: 'redact' }], [], true));
  const texts = ['Mail a@x.org as [EMAIL_1]', 'and b@x.org, c@x.org as \\[email 3\\], [EMAIL] or [1]'];
  const { subject } = await screen(
    (visit) => texts.map((text) => visit(text, { field: 'text', kind: 'text' })),
    screener,
  );
  expect(subject).toEqual(['Mail [EMAIL_2] as [EMAIL_1]', 'and [EMAIL_4], [EMAIL_5] as \\[email 3\\], [EMAIL] or [1]']);
  const restorer = createRestorer(screener.numbering.values);
  expect(restorer.push(subject.join('|')) + restorer.end()).toBe(texts.join('|'));
});

test('placeholders in the client’s text are searched in slices, and found at their borders', async () => {
  const { scan_slice_chars } = limits;
  const written = '[EMAIL_1]';
  for (const back of [0, 4, written.length]) {
    const text = `${'x '.repeat(scan_slice_chars).slice(0, scan_slice_chars - back)}${written}${' y'.repeat(2 * scan_slice_chars)} a@x.org`;
    const read: number[] = [];
    const screener = screenerOf(guardrailOf([{ slug: 'email', action: 'redact' }], [], true));
    const { numbering } = screener;
    const avoid = (piece: string) => {
      read.push(piece.length);
      numbering.avoid(piece);
    };
    expect(await one(text, { ...screener, numbering: { ...numbering, avoid } })).toMatch(/ \[EMAIL_2\]$/);
    expect(Math.max(...read)).toBeLessThan(2 * scan_slice_chars);
  }
});

test.each(['Email', 'e-mail_', '[EMAIL]', 'mail]\n[to', ' a ', '\\', 'key_1'])(
  'values of the label %j beside others are restored',
  async (label) => {
    const custom = (pattern: string, name: string): CustomFilter => ({ pattern, action: 'redact', label: name });
    const patterns = [custom('one-\\d', label), custom('two-\\d', label.toUpperCase()), custom('three-\\d', 'key')];
    const screener = screenerOf(guardrailOf([{ slug: 'email', action: 'redact' }], patterns, true));
    const text = 'a@x.org one-1 two-1 three-1 one-2 two-2 three-2 b@x.org one-1';
    const filtered = await one(text, screener);
    expect(filtered).not.toMatch(/@|-\d/);
    const restorer = createRestorer(screener.numbering.values);
    expect(restorer.push(filtered) + restorer.end()).toBe(text);
  },
);

describe('a pattern over a JSON field and its value', () => {
  const patterns: CustomFilter[] = [
    { pattern: '"api_key":\\s*"[^"]+"', action: 'redact', label: 'KEY' },
    { pattern: 'pin"?[:= ]+\\d+', action: 'redact', label: 'PIN' },
  ];
  const written = '{"a": {"api_key": "ab\\u0063-1", "b": ["api_key", {"x_pin":  1234}], "note": "pin: 12"}, "n": 1}';

  test.each(['tool', 'arguments'])('is found in %s, which stays JSON', async (where) => {
    const call = (filtered: string) => [
      { id: 'c', type: 'function' as const, function: { name: 'f', arguments: filtered } },
    ];
    const turn: Message = { role: 'assistant', content: null, tool_calls: call(where === 'tool' ? '{}' : written) };
    const result: Message = { role: 'tool', tool_call_id: 'c', content: where === 'tool' ? written : 'ok' };
    const [callTurn, filtered] = (await messagesOf([turn, result], guardrailOf([], patterns))) as [
      typeof turn,
      typeof result,
    ];
    const text = where === 'tool' ? (filtered.content as string) : callTurn.tool_calls![0]!.function.arguments;
    expect(JSON.parse(text)).toEqual({
      a: { '[KEY]': '[KEY]', b: ['api_key', { 'x_[PIN]': '[PIN]' }], note: '[PIN]' },
      n: 1,
    });
  });

  test('is refused if it blocks', async () => {
    const guardrail = guardrailOf(
      [],
      patterns.map((one) => ({ ...one, action: 'block' as const })),
    );
    const screener = screenerOf(guardrail);
    const { refusal } = await screen((visit) => visit('{"api_key":"abc"}', { field: 'f', kind: 'json' }), screener);
    expect(refusal?.filter.label).toBe('KEY');
  });

  test('ends with the lines of the strings', async () => {
    const screener = screenerOf(guardrailOf([], [{ pattern: 'password.*', action: 'redact', label: 'P' }]));
    const content = { a: 'a password is\nhere', b: '\\next' };
    const { subject } = await screen((visit) => visit(JSON.stringify(content), { field: 'f', kind: 'json' }), screener);
    expect(JSON.parse(subject)).toEqual({ a: 'a [P]\nhere', b: '\\next' });
  });
});

describe('very many texts of one turn', () => {
  const COUNT = 20_000;
  const texts = {
    'without findings': () => 'a',
    'with the same finding': () => EMAIL,
    'with a finding each': (at: number) => `card 4111 1111 1111 1111 of ${at}`,
  };

  test.each(Object.entries(texts))('are filtered in many turns: %s', async (_, textOf) => {
    let turns = 0;
    const filters = guardrailOf([
      { slug: 'email', action: 'redact' },
      { slug: 'credit-card', action: 'redact' },
    ]);
    const parts = Array.from({ length: COUNT }, (_, at) => ({ type: 'text' as const, text: textOf(at) }));
    const request: ChatRequest = { messages: [{ role: 'user', content: parts }] };
    const pause = async () => {
      turns += 1;
    };
    await screen((visit) => requestTexts(request, { visit, keeps_signatures: false }), screenerOf(filters, { pause }));
    // Texts are counted as 64 characters at least, of 32,768 in a turn; joints are passed 1,000 texts a turn.
    expect(turns).toBeGreaterThanOrEqual(COUNT / 512 + (3 * COUNT) / 1_000);
  });
});
