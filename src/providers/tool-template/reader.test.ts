import { describe, expect, test } from 'vitest';
import { accumulate } from '../../schemas/accumulate.ts';
import { chunksOf } from '../../schemas/chunks.ts';
import type { ChatChunk } from '../../schemas/inner.ts';
import type { AttemptState } from '../dialect.ts';
import { openaiChat } from '../openai-chat/index.ts';
import { createFramer } from '../transport/frames.ts';
import { createTemplatedDecoder, decodeTemplated } from './dialect.ts';
import type { ToolTemplate } from './markup.ts';
import { TemplateReader } from './reader.ts';

const TEMPLATE: ToolTemplate = { names: ['look'], is_forced: false, is_single: false };
const CALL = '<tool_call>{"name":"look","arguments":{"at":"é"}}</tool_call>';
const stateOf = (toolTemplate?: ToolTemplate): AttemptState => ({
  generation_id: 'gen-1',
  ...openaiChat.encodeRequest(
    { messages: [{ role: 'user', content: 'Hi' }] },
    {
      model: 'a/b',
      provider: 'p',
      upstream_model: 'b',
      max_completion_tokens: undefined,
      context_length: undefined,
      input_modalities: ['text'],
      quirks: { think_tags: true },
    },
    { media: new Map(), strip_state: false },
  ).state,
  ...(toolTemplate === undefined ? {} : { tool_template: toolTemplate }),
});
const TEXT = `<think>I ${CALL} think</think>First\n${CALL}\nthen ${CALL}\n`;
const usage = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 };

function bytesOf(pieces: readonly string[]): Uint8Array {
  const events = pieces.map((content) => ({ id: 'a', choices: [{ index: 0, delta: { content } }] }));
  const all = [...events, { id: 'a', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage }];
  return new TextEncoder().encode(
    `${all.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`,
  );
}

function decoded(bytes: Uint8Array, cuts: readonly number[], state = stateOf(TEMPLATE)): ChatChunk[] {
  const framer = createFramer('sse');
  const decoder = createTemplatedDecoder(openaiChat, state);
  const chunks: ChatChunk[] = [];
  let from = 0;
  for (const to of [...cuts, bytes.length]) {
    for (const frame of framer.push(bytes.subarray(from, to))) chunks.push(...decoder.push(frame));
    from = to;
  }
  for (const frame of framer.end()) chunks.push(...decoder.push(frame));
  return [...chunks, ...decoder.end()];
}

describe('an answer with calls in its text', () => {
  test('the same bytes give the same chunks, however they are split', () => {
    const bytes = bytesOf(TEXT.match(/.{1,16}/gsu)!);
    const whole = decoded(bytes, []);
    for (let at = 1; at < bytes.length; at += 1) expect(decoded(bytes, [at])).toEqual(whole);
    expect(decoded(bytes, Array.from(bytes, (_, at) => at).slice(1))).toEqual(whole);
  });

  test('a whole answer equals its accumulated stream, however the stream is split', () => {
    const message = { role: 'assistant', content: TEXT };
    const body = { id: 'a', choices: [{ index: 0, message, finish_reason: 'stop' }], usage };
    const completion = accumulate(decodeTemplated(openaiChat, body, stateOf(TEMPLATE)), 0);
    for (const pieces of [[TEXT], [...TEXT], TEXT.match(/.{1,7}/gs)!]) {
      expect(accumulate(decoded(bytesOf(pieces), []), 0).choices).toEqual(completion.choices);
    }
    const [choice] = completion.choices;
    expect(choice.finish_reason).toBe('tool_calls');
    expect(choice.native_finish_reason).toBe('stop');
    expect(choice.message.tool_calls).toHaveLength(2);
    expect(choice.message.reasoning).toBe(`I ${CALL} think`);
    expect(completion.ext.usage).toMatchObject({ in_uncached: 5, out_text: 7 });
    // As a stream of chunks it is the same answer.
    expect(accumulate(chunksOf(completion), 0)).toEqual(completion);
  });

  test('blocks are numbered in order, opened once and closed once', () => {
    const open = new Set<number>();
    let opened = 0;
    for (const { ext, delta } of decoded(bytesOf([...TEXT]), [])) {
      if (ext?.slot === undefined) {
        expect(delta.content ?? '').toBe('');
        continue;
      }
      const { n, open: opening, close } = ext.slot;
      if (opening !== undefined) {
        expect(n).toBe(opened);
        opened += 1;
        open.add(n);
      }
      expect(open.has(n)).toBe(true);
      if (close !== undefined) open.delete(n);
    }
    expect(open.size).toBe(0);
    expect(opened).toBe(5);
  });

  test('native calls of the upstream are kept beside calls in the text', () => {
    const reader = new TemplateReader(TEMPLATE, 'gen-1');
    const call = { index: 0, id: 'n', type: 'function' as const, function: { name: 'look', arguments: '{}' } };
    const chunks = reader.take([
      { delta: { content: CALL }, ext: { slot: { n: 0, open: { kind: 'text' }, close: {} } } },
      { delta: { tool_calls: [call] }, ext: { slot: { n: 1, open: { kind: 'call' }, close: {} } } },
      { delta: {}, finish_reason: 'tool_calls' },
    ]);
    expect(accumulate(chunks, 0).choices[0].message.tool_calls?.map(({ function: made }) => made.arguments)).toEqual([
      '{"at":"é"}',
      '{}',
    ]);
  });

  test('citation offsets are cleared if a call was removed from the text', () => {
    const urlCitation = { url: 'https://a.example/', start_index: 0, end_index: 3 };
    const annotated = (content: string) => {
      const reader = new TemplateReader(TEMPLATE, 'gen-1');
      const slot = { n: 0, open: { kind: 'text' as const } };
      return reader
        .take([
          { delta: { content }, ext: { slot } },
          { delta: { annotations: [{ type: 'url_citation', url_citation: urlCitation }] } },
        ])
        .flatMap(({ delta }) => delta.annotations ?? []);
    };
    expect(annotated('Yes')).toEqual([{ type: 'url_citation', url_citation: urlCitation }]);
    expect(annotated(`Yes ${CALL}`)).toEqual([
      { type: 'url_citation', url_citation: { ...urlCitation, end_index: 0 } },
    ]);
  });
});
