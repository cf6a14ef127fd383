import { describe, expect, test } from 'vitest';
import { limits } from '../../limits.ts';
import { accumulate } from '../../schemas/accumulate.ts';
import type { ChatChunk, Delta, SlotEvent, UrlCitation } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { filterSetOf } from '../policy/filter-set.ts';
import { UNRESTRICTED } from '../policy/guardrail.ts';
import { finderOf } from '../policy/output-filters.ts';
import { placeholderFinder } from '../restorer.ts';
import { type AnswerFilterOptions, createAnswerFilter } from './answer-filter.ts';

const set = filterSetOf([
  {
    id: 'g',
    scope: 'api-key',
    ...UNRESTRICTED,
    content_filter_builtins: [{ slug: 'email', action: 'redact' }],
    content_filters: null,
    content_filter_output: true,
    content_filter_reversible: null,
  },
])!;
const filterOf = (options: Partial<AnswerFilterOptions> = {}) =>
  createAnswerFilter({
    finder: finderOf(set, () => {}),
    content_is_json: false,
    keeps_signatures: false,
    isOfTurn: (detail) => detail.type === 'reasoning.encrypted' && detail.data === 'seal',
    ...options,
  });
const chunk = (n: number, delta: Delta, event: Omit<SlotEvent, 'n'> = {}): ChatChunk => ({
  delta,
  ext: { slot: { n, ...event } },
});
const text = { open: { kind: 'text' as const } };
const called = { open: { kind: 'call' as const } };
const call = (index: number, argumentsText: string, id?: string): Delta => ({
  tool_calls: [
    {
      index,
      ...(id === undefined ? {} : { id }),
      function: { ...(id ? { name: 'f' } : {}), arguments: argumentsText },
    },
  ],
});
const end: ChatChunk = { delta: {}, finish_reason: 'stop' };

function shown(chunks: readonly ChatChunk[]): ChatChunk[] {
  const filter = filterOf();
  return [...chunks.flatMap((one) => filter.take([one])), ...filter.end()];
}
const messageOf = (chunks: readonly ChatChunk[]) => accumulate(chunks, 0).choices[0].message;

test('a match over several blocks of one text is replaced, and the blocks stay in order', () => {
  const output = shown([
    chunk(0, { content: 'Ask bob@ma' }, text),
    chunk(0, {}, { close: {} }),
    chunk(1, { content: 'il.example.com now.' }, text),
    chunk(1, {}, { close: {} }),
    end,
  ]);
  expect(messageOf(output).content).toEqual([
    { type: 'text', text: 'Ask [EMAIL]' },
    { type: 'text', text: ' now.' },
  ]);
  expect(
    output.flatMap(({ ext }) =>
      ext?.slot?.close ? [`close ${ext.slot.n}`] : ext?.slot?.open ? [`open ${ext.slot.n}`] : [],
    ),
  ).toEqual(['open 0', 'close 0', 'open 1', 'close 1']);
});

test('arguments of interleaved calls are filtered separately', () => {
  const output = shown([
    chunk(0, call(0, '{"to":"bob@ma', 'a'), called),
    chunk(1, call(1, '{"to":"eve@ma', 'b'), called),
    chunk(0, call(0, 'il.example.com"}')),
    chunk(1, call(1, 'il.example.org"}')),
    chunk(0, {}, { close: {} }),
    chunk(1, {}, { close: {} }),
    end,
  ]);
  expect(messageOf(output).tool_calls?.map((one) => one.function.arguments)).toEqual([
    '{"to":"[EMAIL]"}',
    '{"to":"[EMAIL]"}',
  ]);
});

test('held text is released before a block of another kind starts', () => {
  const output = shown([
    chunk(0, { content: 'Ask bob' }, text),
    chunk(0, {}, { close: {} }),
    chunk(1, call(0, '{}', 'a'), called),
  ]);
  const at = (wanted: (one: ChatChunk) => boolean) => output.findIndex(wanted);
  expect(at(({ delta }) => delta.content === 'bob')).toBeLessThan(at(({ delta }) => delta.tool_calls !== undefined));
  expect(at(({ delta }) => delta.content === 'bob')).toBeGreaterThan(-1);
});

test('citations refer to the shown text, and their quotes are filtered', () => {
  const citation = (startIndex: number, endIndex: number): UrlCitation => ({
    type: 'url_citation',
    url_citation: {
      url: 'https://a.example/',
      title: 'Of eve@mail.example.com',
      content: 'x',
      start_index: startIndex,
      end_index: endIndex,
    },
  });
  const whole = '😀 Ask bob@mail.example.com today.';
  const from = [...'😀 Ask bob@mail.example.com '].length;
  const raw = {
    type: 'response.output_text.annotation.added',
    annotation: { type: 'url_citation', start_index: from, end_index: from + 5 },
  };
  const output = shown([
    ...[...whole].map((content, at) => chunk(0, { content }, at === 0 ? text : {})),
    chunk(0, { annotations: [citation(from, from + 5), citation(0, 3), citation(8, 10)] }, { raw }),
    chunk(0, {}, { close: {} }),
    end,
  ]);
  const { content, annotations } = messageOf(output);
  expect(content).toBe('😀 Ask [EMAIL] today.');
  const cited = (annotations as UrlCitation[]).map(({ url_citation: { start_index, end_index } }) =>
    [...String(content)].slice(start_index, end_index).join(''),
  );
  expect(cited).toEqual(['today', '😀 A', '[EMAIL]']);
  expect(JSON.stringify(annotations)).not.toContain('eve@');
  const shownRaw = output.flatMap(({ ext }) => (ext?.slot?.raw ? [ext.slot.raw['annotation'] as JsonObject] : []));
  expect(shownRaw[0]).toMatchObject({ start_index: 14, end_index: 19 });
});

test('streamed text of native blocks is filtered as one text, whole values separately, and ids stay', () => {
  const block = {
    type: 'server_tool_use',
    id: 'srv_4155550100',
    name: 'web_search',
    input: { query: 'bob@mail.example.com' },
  };
  const native = { type: 'native' as const, wire: 'anthropic-messages' as const, block };
  const piece = (partialJson: string) => chunk(0, {}, { raw: { type: 'input_json_delta', partial_json: partialJson } });
  const output = shown([
    chunk(0, {}, { open: { kind: 'native', native } }),
    piece('{"query":"bob@ma'),
    piece('il.example'),
    piece('.com"}'),
    chunk(0, {}, { close: { native } }),
    end,
  ]);
  const pieces = output.map(({ ext }) => ext?.slot?.raw?.['partial_json'] ?? '').join('');
  expect(pieces).toBe('{"query":"[EMAIL]"}');
  expect(JSON.stringify(output)).not.toContain('bob@');
  expect(JSON.stringify(output)).toContain('srv_4155550100');
});

test('log probabilities of replaced text are omitted, and others stay', () => {
  const likely = (token: string) => ({ content: [{ token, logprob: -0.1 }] });
  const output = shown([
    { ...chunk(0, { content: 'Ask ' }, text), logprobs: likely('Ask ') },
    { ...chunk(0, { content: 'bob@mail' }), logprobs: likely('bob@mail') },
    { ...chunk(0, { content: '.example.com now. ' }), logprobs: likely('.example.com now. ') },
    { ...chunk(0, { content: 'Yes.' }), logprobs: likely('Yes.') },
    chunk(0, {}, { close: {} }),
    end,
  ]);
  expect(JSON.stringify(output)).not.toContain('mail');
  expect(
    output.flatMap(({ logprobs }) =>
      logprobs === undefined ? [] : [(logprobs as ReturnType<typeof likely>).content[0]!.token],
    ),
  ).toEqual(['Ask ', 'Yes.']);
});

test('a match over a continuation by another endpoint is replaced', () => {
  const filter = filterOf();
  const output = [
    ...filter.take([chunk(0, { content: 'Ask bob@ma' }, text)]),
    ...filter.reopen(),
    ...filter.take([chunk(0, { content: 'il.example.com now.' }, text), chunk(0, {}, { close: {} }), end]),
  ];
  expect(output.map(({ delta }) => delta.content ?? '').join('')).toBe('Ask [EMAIL] now.');
});

test('a detail about the whole turn is omitted if the turn was changed', () => {
  const seal: ChatChunk = { delta: { reasoning_details: [{ type: 'reasoning.encrypted', data: 'seal' }] } };
  const turn = (content: string) => [chunk(0, { content }, text), chunk(0, {}, { close: {} }), seal, end];
  expect(JSON.stringify(shown(turn('Ask him')))).toContain('seal');
  expect(JSON.stringify(shown(turn('Ask bob@mail.example.com')))).not.toContain('seal');
});

test('a chunk without matches is passed on as the same object', () => {
  const chunks = [chunk(0, { content: 'Hello there. ' }, text), end];
  const output = shown(chunks);
  expect(messageOf(output).content).toBe('Hello there. ');
  expect(output.at(-1)).toBe(end);
});

test('a long text with very many matches in one chunk is filtered', () => {
  const many = 40_000;
  const output = shown([chunk(0, { content: 'a@b.co '.repeat(many) }, text), chunk(0, {}, { close: {} }), end]);
  expect(messageOf(output).content).toBe('[EMAIL] '.repeat(many));
});

test('field names in model data have no meaning for the wire, and URLs are filtered', () => {
  const block = {
    type: 'mcp_tool_use',
    id: 'mcptoolu_4155550100',
    input: { id: 'bob@mail.example.com', customer_id: 'eve@mail.example.com', data: ['ann@mail.example.com'] },
    source: { url: 'https://a.example/?to=joe@mail.example.com' },
    picture: { url: 'data:image/png;base64,AAAA' },
  };
  const native = { type: 'native' as const, wire: 'anthropic-messages' as const, block };
  const output = JSON.stringify(
    shown([chunk(0, {}, { open: { kind: 'native', native } }), chunk(0, {}, { close: {} }), end]),
  );
  expect(output).not.toContain('mail.example.com');
  expect(output).toContain('mcptoolu_4155550100');
  expect(output).toContain('https://a.example/?to=[EMAIL]');
  expect(output).toContain('data:image/png;base64,AAAA');
});

describe('content that is requested as JSON', () => {
  function filtered(content: string, cuts: readonly string[], options: Partial<AnswerFilterOptions> = {}): string {
    const filter = filterOf({ content_is_json: true, ...options });
    const chunks = cuts.map((piece, at) => chunk(0, { content: piece }, at === 0 ? text : {}));
    expect(cuts.join('')).toBe(content);
    return accumulate([...chunks.flatMap((one) => filter.take([one])), ...filter.take([end]), ...filter.end()], 0)
      .choices[0].message.content as string;
  }

  test.each([
    ['{"a":"To:\\nbob@mail.example.com\\nBye"}', { a: 'To:\n[EMAIL]\nBye' }],
    ['{"a":"bob\\u0040mail.example.com","n":[1, 2.5]}', { a: '[EMAIL]', n: [1, 2.5] }],
    [
      '[{"bob@mail.example.com": null}, "\\u00e9 \\\\ \\"q\\" bob@mail.example.com"]',
      [{ '[EMAIL]': null }, 'é \\ "q" [EMAIL]'],
    ],
  ])('is filtered by its unescaped strings, and stays JSON: %s', (content, expected) => {
    for (let cut = 0; cut <= content.length; cut += 1) {
      expect(JSON.parse(filtered(content, [content.slice(0, cut), content.slice(cut)]))).toEqual(expected);
    }
    expect(JSON.parse(filtered(content, [...content]))).toEqual(expected);
  });

  test('has redacted values restored with escapes', () => {
    const values = new Map([['[ADDRESS_1]', '12 "High" Street,\nBoston']]);
    const content = '{"to":"[ADDRESS_1]"}';
    const options = { finder: placeholderFinder(values) };
    expect(JSON.parse(filtered(content, [...content], options))).toEqual({ to: '12 "High" Street,\nBoston' });
  });

  test.each(['Mail bob@mail.example.com: {"a"}', '```json\n{"a":"bob@mail.example.com"}\n```'])(
    'is filtered as plain text if it is not JSON: %j',
    (content) => {
      const expected = content.replace('bob@mail.example.com', '[EMAIL]');
      expect(filtered(content, [content])).toBe(expected);
      expect(filtered(content, [...content])).toBe(expected);
    },
  );

  test('is filtered at the bound of held text if it continues as plain text', () => {
    const address = 'bob@mail.example.com';
    const words = `{"a":1}\n${'word '.repeat(limits.filter_held_chars_max / 4)}`;
    for (let back = 0; back < 2 * address.length; back += 1) {
      const before = words.slice(0, limits.filter_held_chars_max - back + '{"a":1}\n'.length);
      const content = `${before} ${address} end`;
      expect(filtered(content, content.match(/[\s\S]{1,7}/g)!)).toBe(`${before} [EMAIL] end`);
    }
  });

  test('is filtered by patterns over a field and its value in any chunking, and stays JSON', () => {
    const patterns = [
      { pattern: '"api_key":\\s*"[^"]+"', action: 'redact' as const, label: 'KEY' },
      { pattern: 'pin"?[:= ]+\\d+', action: 'redact' as const, label: 'P "I" N' },
      { pattern: '\\bSEKRET\\w*', action: 'redact' as const, label: 'S' },
    ];
    const matchedLabels: string[] = [];
    const of = filterSetOf([
      { ...UNRESTRICTED, id: 'g', scope: 'api-key', content_filters: patterns, content_filter_output: true },
    ])!;
    const finder = finderOf(of, ({ filter }) => matchedLabels.push(of.filters[filter]!.label));
    const content =
      '{"a": {"api_key": "abc-1", "b": ["api_key", {"x_pin":  1234}], "note": "\\nSEKRET1 pin: 12"}, "n": 1}';
    const expected = {
      a: { '[KEY]': '[KEY]', b: ['api_key', { 'x_[P "I" N]': '[P "I" N]' }], note: '\n[S] [P "I" N]' },
      n: 1,
    };
    for (let cut = 0; cut <= content.length; cut += 1) {
      matchedLabels.length = 0;
      expect(JSON.parse(filtered(content, [content.slice(0, cut), content.slice(cut)], { finder }))).toEqual(expected);
      expect(matchedLabels.toSorted()).toEqual(['KEY', 'P "I" N', 'P "I" N', 'S']);
    }
    expect(JSON.parse(filtered(content, [...content], { finder }))).toEqual(expected);
    const filter = filterOf({ finder });
    const calls = [...content].map((piece, at) =>
      chunk(0, call(0, piece, at === 0 ? 'a' : undefined), at === 0 ? called : {}),
    );
    const chunks = [...calls.flatMap((one) => filter.take([one])), ...filter.take([end]), ...filter.end()];
    expect(JSON.parse(messageOf(chunks).tool_calls![0]!.function.arguments)).toEqual(expected);
  });

  test.each([
    ['"key":\\s*"[^"]+"', '{"key":"say \\"hi\\" there","b":1}', '{"[K]":"[K]hi\\" there","b":1}'],
    ['"key":\\s*"[^"]+"', '{"key":"C:\\\\","b":1}', '{"[K]":"[K]","b":1}'],
    ['key\\W+\\w+', '{"key": "\\"a\\" b", "n": 12}', '{"[K]": "[K]\\" b", "n": 12}'],
    ['.{0,5}key"', '{"a":"say \\"","key":[1234]}', '{"a":"say [K]","[K]":[1234]}'],
    ['key\\W+\\d\\d', '{"key":[-1234, true]}', '{"[K]":["[K]", true]}'],
    ['key\\W.*', `{"key":"${'x'.repeat(5000)}", "b": [1, "c"]}`, undefined],
  ])('stays JSON if a pattern (%s) ends within an escape, a string or a number', (pattern, content, expected) => {
    const patterns = [{ pattern, action: 'redact' as const, label: 'K' }];
    const of = filterSetOf([
      { ...UNRESTRICTED, id: 'g', scope: 'api-key', content_filters: patterns, content_filter_output: true },
    ])!;
    const options = { finder: finderOf(of, () => {}) };
    const cuts = Array.from({ length: Math.min(content.length, 80) }, (_, cut) => [
      content.slice(0, cut),
      content.slice(cut),
    ]);
    for (const pieces of [...cuts, [...content]]) {
      const shown = filtered(content, pieces, options);
      if (expected !== undefined) expect(shown).toBe(expected);
      expect(JSON.stringify(JSON.parse(shown))).not.toContain('xx');
      const filter = filterOf(options);
      const calls = pieces.map((piece, at) =>
        chunk(0, call(0, piece, at === 0 ? 'a' : undefined), at === 0 ? called : {}),
      );
      const chunks = [...calls.flatMap((one) => filter.take([one])), ...filter.take([end]), ...filter.end()];
      expect(messageOf(chunks).tool_calls![0]!.function.arguments).toBe(shown);
    }
  });
});
