/** Answers of a provider that few providers send: many of one thing, in one-character pieces, deep, or long where texts are short. */
import { completion, eventStream, times, usage, whole } from './answers.ts';

const LONG = 'She said "yes", and\nwalked on. ';
const text = (bytes: number) => LONG.repeat(Math.ceil(bytes / 32)).slice(0, bytes);
const chunk = (choices: unknown[]) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'scripted', choices })}\n\n`;
const end = `${chunk([{ index: 0, delta: {}, finish_reason: 'stop' }])}data: [DONE]\n\n`;

export const argumentsInCharacters = (bytes: number) => {
  const call = (fields: object) =>
    chunk([{ index: 0, delta: { tool_calls: [{ index: 0, ...fields }] }, finish_reason: null }]);
  const one = call({ function: { arguments: 'a' } });
  return eventStream(
    `${call({ id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":"' } })}${one.repeat(bytes / one.length)}${call({ function: { arguments: '"}' } })}${end}`,
  );
};

const named = (event: { type: string }) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
const anthropic = (blocks: string) =>
  eventStream(
    named({
      type: 'message_start',
      message: {
        id: 'm',
        type: 'message',
        role: 'assistant',
        model: 'scripted',
        content: [],
        stop_reason: null,
        usage: { input_tokens: 3, output_tokens: 1 },
      },
    } as { type: string }) +
      blocks +
      named({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } } as {
        type: string;
      }) +
      named({ type: 'message_stop' }),
  );
const block = (index: number, started: object, delta: object, count: number) => {
  const one = named({ type: 'content_block_delta', index, delta } as { type: string });
  return (
    named({ type: 'content_block_start', index, content_block: started } as { type: string }) +
    one.repeat(count) +
    named({ type: 'content_block_stop', index } as { type: string })
  );
};
export const anthropicArgumentsInCharacters = (bytes: number) =>
  anthropic(
    block(
      0,
      { type: 'tool_use', id: 't', name: 'f', input: {} },
      { type: 'input_json_delta', partial_json: ' ' },
      bytes / 130,
    ),
  );
export const anthropicThoughts = (bytes: number) =>
  anthropic(
    times(4_000, (at) =>
      block(
        at,
        { type: 'thinking', thinking: '', signature: '' },
        { type: 'thinking_delta', thinking: 'a' },
        Math.max(1, bytes / 4_000 / 130),
      ),
    ).join(''),
  );

export const manyChoices = (bytes: number) => {
  const one = chunk(times(128, (index) => ({ index, delta: { content: 'a' }, finish_reason: null })));
  return eventStream(one.repeat(Math.max(1, bytes / one.length)) + end);
};
export const wholeChoices = (bytes: number) =>
  whole(
    JSON.stringify({
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'scripted',
      choices: times(128, (index) => ({
        index,
        message: {
          role: 'assistant',
          content: 'a',
          tool_calls: times(Math.min(bytes / 128 / 80, 15), (at) => ({
            id: `c${at}`,
            type: 'function',
            function: { name: 'f', arguments: '{}' },
          })),
        },
        finish_reason: 'stop',
      })),
      usage,
    }),
  );

export const longAnnotations = (bytes: number) =>
  whole(
    completion({
      content: 'a text',
      annotations: times(9_000, (at) => ({
        type: 'url_citation',
        url_citation: {
          url: `https://a.example/${at}`,
          title: 'A',
          content: text(bytes / 9_000),
          start_index: 0,
          end_index: 1,
        },
      })),
    }),
  );
export const longFile = (bytes: number) =>
  whole(
    completion({
      content: 'a text',
      annotations: [
        { type: 'file', file: { hash: 'h', name: 'a.pdf', content: [{ type: 'text', text: text(bytes) }] } },
      ],
    }),
  );
export const anthropicCitations = (bytes: number) =>
  whole(
    JSON.stringify({
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'scripted',
      content: times(4_000, (at) => ({
        type: 'text',
        text: 'Some words.',
        citations: [
          {
            type: 'web_search_result_location',
            url: `https://a.example/${at}`,
            title: 'A',
            encrypted_index: 'x',
            cited_text: text(bytes / 4_000),
          },
        ],
      })),
      stop_reason: 'end_turn',
      usage: { input_tokens: 3, output_tokens: 5 },
    }),
  );

const called = (args: string) =>
  whole(
    completion({
      content: null,
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: args } }],
    }),
  );
export const deepArguments = (bytes: number) => {
  const half = Math.min(bytes, 15e6) / 2;
  return called(`{"a":${'['.repeat(half)}${']'.repeat(half)}}`);
};
export const wideArguments = (bytes: number) => called(`{"a":[${'{},'.repeat(Math.min(bytes, 15e6) / 3)}{}]}`);
export const wholeEscapes = (bytes: number) => whole(completion({ content: '\u0007'.repeat(bytes / 6) }));
export const reasoningDetails = (bytes: number) =>
  whole(
    completion({
      content: 'a',
      reasoning_details: times(9_000, (index) => ({
        type: 'reasoning.text',
        text: text(bytes / 9_000),
        signature: 'b',
        index,
        format: 'anthropic-claude-v1',
      })),
    }),
  );
export const encryptedReasoning = (bytes: number) =>
  whole(
    completion({
      content: 'a',
      reasoning_details: times(1_000, (index) => ({
        type: 'reasoning.encrypted',
        data: 'A'.repeat(bytes / 1_000),
        index,
        format: 'openai-responses-v1',
      })),
    }),
  );
export const geminiParts = (bytes: number) =>
  whole(
    JSON.stringify({
      candidates: [
        {
          content: {
            role: 'model',
            parts: times(4_900, (at) =>
              at % 2 === 0
                ? { text: text(bytes / 4_900), thought: true }
                : { text: text(bytes / 4_900), thoughtSignature: 'QUFB' },
            ),
          },
          finishReason: 'STOP',
          index: 0,
        },
      ],
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 5, totalTokenCount: 8 },
    }),
  );
export const unknownFields = (bytes: number) =>
  whole(completion({ content: 'a', x: times(Math.min(bytes / 600, 90_000), () => text(600)) }));
export const nativeItems = (bytes: number) =>
  whole(
    JSON.stringify({
      id: 'resp_1',
      object: 'response',
      status: 'completed',
      model: 'scripted',
      output: [
        ...times(900, (at) => ({
          type: 'web_search_call',
          id: `ws_${at}`,
          status: 'completed',
          action: { type: 'search', query: text(bytes / 900) },
        })),
        {
          type: 'message',
          id: 'msg_1',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: 'a', annotations: [] }],
        },
      ],
      usage: { input_tokens: 3, output_tokens: 5, total_tokens: 8 },
    }),
  );
export const longError = (bytes: number) => whole(JSON.stringify({ error: { message: text(bytes), code: 502 } }));
/** The vectors of `count` inputs. */
export const vectors = (count: number, bytes: number) =>
  whole(
    JSON.stringify({
      object: 'list',
      model: 'scripted',
      data: times(count, (index) => ({
        object: 'embedding',
        index,
        embedding: times(Math.max(1, Math.min(bytes / count / 11, 3_072)), (at) => (at % 1000) / 1000 - 0.51234),
      })),
      usage: { prompt_tokens: 3, total_tokens: 3 },
    }),
  );
