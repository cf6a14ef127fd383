/**
 * The leak corpus: secrets of every kind in the reasoning, the text and the arguments of streams of every wire, cut at
 * every place, through every client's encoder. No part of them is in the output, and everything else is.
 */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ChatStreamEncoder, encodeCompletion } from '../src/api/chat/encode.ts';
import { createCompletionStream } from '../src/api/completions/encode.ts';
import { encodeMessage } from '../src/api/messages/encode.ts';
import { createMessagesStream } from '../src/api/messages/stream.ts';
import { filterSetOf } from '../src/guardrails/policy/filter-set.ts';
import { UNRESTRICTED } from '../src/guardrails/policy/guardrail.ts';
import { finderOf } from '../src/guardrails/policy/output-filters.ts';
import { createAnswerFilter } from '../src/guardrails/streams/answer-filter.ts';
import type { StreamEnd } from '../src/inference/events.ts';
import { NO_USAGE } from '../src/inference/money/answer-usage.ts';
import { createEnvelopes } from '../src/inference/reasoning/envelope.ts';
import { transformWhole } from '../src/inference/transform.ts';
import { dialects } from '../src/providers/dialects.ts';
import { accumulate } from '../src/schemas/accumulate.ts';
import type { BoundGuardrail, BuiltinFilter, CustomFilter } from '../src/schemas/guardrail.ts';
import type { ChatChunk, ChatCompletion, Wire } from '../src/schemas/inner.ts';
import { checkChatStream } from './grammar/chat.ts';
import { checkMessagesStream } from './grammar/messages.ts';
import { checkResponsesStream } from './grammar/responses.ts';
import { bytesOf, decoded, type ModelOutput } from './leak-streams.ts';
import { inTier } from './tier.ts';
import { contextOf, encoded, generationId, streamed } from './wires/responses-encoder.ts';

const wires: readonly Wire[] = [...dialects.keys()];
const SLUGS = ['email', 'phone', 'ssn', 'credit-card', 'ip-address'] as const;

/** The values that the filters must find: at least one of each kind, and its replacement. */
const SECRETS: readonly [secret: string, placeholder: string][] = [
  ['bob.smith+tag@mail.example.com', '[EMAIL]'],
  ['zoë@müller.example', '[EMAIL]'],
  ['415-555-0134', '[PHONE]'],
  ['+49 30 901820', '[PHONE]'],
  ['536-22-8174', '[SSN]'],
  ['4111 1111 1111 1111', '[CREDIT_CARD]'],
  ['378282246310005', '[CREDIT_CARD]'],
  ['203.0.113.77', '[IP_ADDRESS]'],
  ['2001:db8:85a3::8a2e:370:7334', '[IP_ADDRESS]'],
  ['kx-9f8e7d6c5b4a', '[KEY]'],
  ['PROJECT (Nightjar) 😀!', '[a "name"]'],
  ['tok_Zq81Zq81Zq81Zq81Zq81Zq81Zq81Zq81', '[REDACTED]'],
];
const PATTERNS: CustomFilter[] = [
  { pattern: 'kx-[0-9a-f]{12}', action: 'redact', label: 'KEY' },
  { pattern: '(?i)project \\(nightjar\\) 😀!', action: 'redact', label: 'a "name"' },
  { pattern: 'tok_\\w+', action: 'redact' },
];

const guardrail = (action: 'redact' | 'block'): BoundGuardrail => ({
  id: 'g',
  scope: 'api-key',
  ...UNRESTRICTED,
  content_filter_builtins: SLUGS.map((slug): BuiltinFilter => ({ slug, action })),
  content_filters: PATTERNS.map((one) => ({ ...one, action })),
  content_filter_output: true,
  content_filter_reversible: null,
});
const sets = { redact: filterSetOf([guardrail('redact')])!, block: filterSetOf([guardrail('block')])! };
const optionsOf = (action: 'redact' | 'block' = 'redact') => ({
  finder: finderOf(sets[action], () => {}),
  content_is_json: false,
  keeps_signatures: false,
  isOfTurn: () => false,
});

function filtered(groups: readonly (readonly ChatChunk[])[], action: 'redact' | 'block' = 'redact'): ChatChunk[][] {
  const filter = createAnswerFilter(optionsOf(action));
  return [...groups.map((group) => filter.take(group)), filter.end()];
}

const json = (text: string) => JSON.stringify(text).slice(1, -1);
const cutAt = (text: string, ...cuts: number[]) =>
  [0, ...cuts].map((from, at) => text.slice(from, [...cuts, text.length][at]));
const outputOf = (text: string): ModelOutput => ({
  reasoning: [`I think of ${text} here.`],
  text: [`Write to ${text}, then go on.`],
  args: [`{"to":"${json(text)}","n":1}`],
});
/** The same with each text in two pieces, cut inside a secret. */
function cutOutput(secret: string, cut: number): ModelOutput {
  const { reasoning, text, args } = outputOf(secret);
  const at = Math.min(cut, json(secret).length);
  return {
    reasoning: cutAt(reasoning[0]!, 'I think of '.length + cut),
    text: cutAt(text[0]!, 'Write to '.length + cut),
    args: cutAt(args[0]!, '{"to":"'.length + at),
  };
}

interface Reading {
  text: string;
  reasoning: string;
  args: unknown;
  finish: string | null;
}

function read({ choices: [{ message, finish_reason }] }: ChatCompletion): Reading {
  return {
    text: String(message.content),
    reasoning: message.reasoning ?? '',
    args: JSON.parse(message.tool_calls?.[0]?.function.arguments ?? 'null'),
    finish: finish_reason,
  };
}
const expected = (placeholder: string): Reading => ({
  text: `Write to ${placeholder}, then go on.`,
  reasoning: `I think of ${placeholder} here.`,
  args: { to: placeholder, n: 1 },
  finish: 'tool_calls',
});

const envelope = createEnvelopes('a secret of thirty-two characters')('org');
const END: StreamEnd = { type: 'end', usage: NO_USAGE, classes: null, metadata: undefined, error: undefined };
const served = { model: 'maker/model', provider: 'Host' };
const chatShown = { id: generationId, created: 1, model: 'a/b', text_form: false, hide_reasoning: false };
const messagesShown = { id: generationId, envelope, reasoning: 'shown' } as const;
const prompts = [{ generation_id: generationId, echo: '' }];

/** The output for the clients of all APIs, streamed and whole. */
function outputs(groups: readonly ChatChunk[][]): Record<string, string> {
  const completion = accumulate(groups.flat(), 1);
  const answer = { completion, served, usage: NO_USAGE, classes: null, metadata: undefined };
  const chat = new ChatStreamEncoder(chatShown);
  const messages = createMessagesStream(messagesShown);
  const legacy = createCompletionStream({ ...chatShown, has_logprobs: true, prompts });
  const shown = {
    chat: chat.open(served) + groups.map((group) => chat.chunks(group)).join('') + chat.end(END),
    'chat, whole': encodeCompletion(answer, chatShown),
    messages: messages.open(served) + groups.map((group) => messages.chunks(group)).join('') + messages.end(END),
    'messages, whole': encodeMessage(answer, messagesShown),
    responses: streamed(groups, contextOf({}, { envelope })),
    'responses, whole': JSON.stringify(encoded(completion, contextOf({}, { envelope }))),
    completions: legacy.open(0, served) + groups.map((group) => legacy.chunks(0, group)).join('') + legacy.end(0, END),
  };
  checkChatStream(shown.chat);
  checkMessagesStream(shown.messages);
  checkResponsesStream(shown.responses);
  return shown;
}

/** Pieces of a secret that are too long for a coincidence, as text and in the form of JSON. */
function piecesOf(secret: string): string[] {
  const size = Math.min(6, secret.length);
  return Array.from({ length: secret.length - size + 1 }, (_, at) => secret.slice(at, at + size)).filter(
    (piece) => !/^[\d\s]*$/.test(piece) || piece.replaceAll(/\s/g, '').length > 4,
  );
}

/** Content that is wrapped for its own client is unwrapped, because it contains text as well. */
function unwrapped(text: string): string {
  const inside = [...text.matchAll(/gw1\.[\w-]+\.[\w-]+/g)].map(([data]) => JSON.stringify(envelope.unwrap(data)));
  return text + inside.join('\n');
}

function expectNothingOf(secret: string, groups: readonly ChatChunk[][]): void {
  for (const [api, output] of Object.entries(outputs(groups as ChatChunk[][]))) {
    const all = unwrapped(output);
    for (const piece of piecesOf(secret)) {
      if (all.includes(piece) || all.includes(json(piece))) expect.fail(`${api} shows ${piece} of ${secret}`);
    }
  }
}

/** Each secret over two wires, and each wire with four of them; in the second tier all combinations. */
const cutOver = (wire: Wire) =>
  inTier(
    SECRETS.filter((_, at) => at % 3 === wires.indexOf(wire) % 3),
    SECRETS,
  );

describe.each(wires)('over %s', (wire) => {
  test.each(cutOver(wire))('%s cut at every place leaves %s, and all text around it', (secret, placeholder) => {
    for (let cut = 0; cut <= secret.length; cut += 1) {
      const groups = filtered(decoded(wire, [bytesOf(wire, cutOutput(secret, cut))]));
      expect(read(accumulate(groups.flat(), 1)), `cut at ${cut}`).toEqual(expected(placeholder));
      expectNothingOf(secret, groups);
    }
    const letters: ModelOutput = {
      reasoning: [...outputOf(secret).reasoning[0]!],
      text: [...outputOf(secret).text[0]!],
      args: [...outputOf(secret).args[0]!],
    };
    const groups = filtered(decoded(wire, [bytesOf(wire, letters)]));
    expect(read(accumulate(groups.flat(), 1))).toEqual(expected(placeholder));
    expectNothingOf(secret, groups);
  });

  test('bytes cut at every place have the same result', () => {
    const all = (of: readonly string[]) => of.join(' and ');
    const bytes = bytesOf(wire, outputOf(all(SECRETS.map(([secret]) => secret))));
    const wanted = expected(all(SECRETS.map(([, placeholder]) => placeholder)));
    const plain = JSON.stringify(decoded(wire, [bytes]).flat());
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const chunks = decoded(wire, [bytes.subarray(0, cut), bytes.subarray(cut)]);
      // The same chunks are filtered in the same way for any reads, which is checked now and then.
      if (cut % 16 !== 0 && JSON.stringify(chunks.flat()) === plain) continue;
      const groups = filtered(chunks);
      expect(read(accumulate(groups.flat(), 1)), `byte ${cut}`).toEqual(wanted);
    }
  });

  test('a whole answer is filtered as its stream is', () => {
    for (const [secret, placeholder] of SECRETS) {
      const completion = accumulate(decoded(wire, [bytesOf(wire, outputOf(secret))]).flat(), 1);
      const shown = transformWhole(completion, createAnswerFilter(optionsOf()));
      expect(read(shown)).toEqual(expected(placeholder));
      expect(shown.ext.usage).toEqual(completion.ext.usage);
    }
  });

  test('an answer without any match is unchanged, in order', () => {
    const groups = decoded(wire, [bytesOf(wire, outputOf('the harbour (at 7, or 8.30)'))]);
    const plain = accumulate(groups.flat(), 1);
    expect(accumulate(filtered(groups).flat(), 1)).toEqual(plain);
    expect(transformWhole(plain, createAnswerFilter(optionsOf()))).toBe(plain);
    const opened = (chunks: readonly ChatChunk[]) => chunks.flatMap(({ ext }) => ext?.slot?.open?.kind ?? []);
    expect(opened(filtered(groups).flat())).toEqual(opened(groups.flat()));
  });

  test('a block ends the answer before the match, wherever it is cut', () => {
    for (const [secret] of cutOver(wire)) {
      for (let cut = 0; cut <= secret.length; cut += 3) {
        const groups = filtered(decoded(wire, [bytesOf(wire, cutOutput(secret, cut))]), 'block');
        const { reasoning, content, tool_calls } = accumulate(groups.flat(), 1).choices[0].message;
        expect([reasoning, content, tool_calls]).toEqual(['I think of ', null, undefined]);
        expect(groups.flat().some(({ finish_reason }) => finish_reason != null)).toBe(false);
      }
    }
  });

  test('a signature is kept if its text is shown unchanged, and only then', () => {
    const signed = (text: string) =>
      JSON.stringify(
        accumulate(filtered(decoded(wire, [bytesOf(wire, outputOf(text))])).flat(), 1).choices[0].message
          .reasoning_details,
      ).includes('signature');
    const hasSignature = wire === 'anthropic-messages' || wire === 'bedrock-converse';
    expect([signed('the harbour'), signed('415-555-0134')]).toEqual([hasSignature, false]);
  });
});

test('any text in any pieces becomes the filtered whole text', () => {
  const word = fc.oneof(
    { weight: 2, arbitrary: fc.constantFrom(...SECRETS.map(([secret]) => secret)) },
    {
      weight: 4,
      arbitrary: fc.constantFrom('and', 'then', '7', '2024-05-06', 'a@b', '@', '"', '\\', '{', '😀', '-', 'kx-'),
    },
    { weight: 1, arbitrary: fc.string({ maxLength: 5 }) },
  );
  const text = fc
    .tuple(fc.array(word, { maxLength: 12 }), fc.constantFrom(' ', ', ', '\n'))
    .map(([words, between]) => words.join(between));
  const cuts = fc.array(fc.nat({ max: 200 }), { maxLength: 6 });
  const pieces = (whole: string, at: readonly number[]) =>
    cutAt(whole, ...[...new Set(at.map((cut) => cut % (whole.length + 1)))].sort((a, b) => a - b));
  fc.assert(
    fc.property(fc.constantFrom(...wires), text, text, text, cuts, (wire, reasoning, content, value, at) => {
      fc.pre(reasoning !== '' && content !== '');
      const argumentsJson = JSON.stringify({ value });
      const output: ModelOutput = {
        reasoning: pieces(reasoning, at),
        text: pieces(content, at),
        args: pieces(argumentsJson, at),
      };
      const groups = decoded(wire, [bytesOf(wire, output)]);
      const { message } = accumulate(filtered(groups).flat(), 1).choices[0];
      const filter = createAnswerFilter(optionsOf());
      const { message: whole } = transformWhole(accumulate(groups.flat(), 1), filter).choices[0];
      expect(message).toEqual(whole);
    }),
    { numRuns: inTier(40, 600), seed: 17 },
  );
});
