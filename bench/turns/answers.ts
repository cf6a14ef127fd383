/**
 * Answers of a provider by their length: large ones, and the worst ones possible. Each is all that its socket writes.
 */
import type { Wire } from '../../src/schemas/inner.ts';

const text = (bytes: number) => 'She said "yes", and\nwalked on. '.repeat(Math.ceil(bytes / 32)).slice(0, bytes);
const JSON_TYPE = 'application/json';
const EVENTS_TYPE = 'text/event-stream';

const head = (type: string, length: string) =>
  `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\n${length}\r\nconnection: close\r\n\r\n`;

export function whole(body: string, type = JSON_TYPE): Buffer {
  const bytes = Buffer.from(body);
  return Buffer.concat([Buffer.from(head(type, `content-length: ${bytes.length}`)), bytes]);
}

export const eventStream = (body: string) => whole(body, EVENTS_TYPE);

/** The same in HTTP chunks of one byte each. */
function inSingleBytes(body: string, type = JSON_TYPE): Buffer {
  const bytes = Buffer.from(body);
  const chunks = Buffer.alloc(bytes.length * 6);
  for (let at = 0; at < bytes.length; at += 1) {
    chunks.write('1\r\n', at * 6, 'latin1');
    chunks[at * 6 + 3] = bytes[at]!;
    chunks.write('\r\n', at * 6 + 4, 'latin1');
  }
  return Buffer.concat([Buffer.from(head(type, 'transfer-encoding: chunked')), chunks, Buffer.from('0\r\n\r\n')]);
}

export const times = (count: number, make: (at: number) => unknown) =>
  Array.from({ length: count }, (_, at) => make(at));
export const usage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 };

export function completion(message: object): string {
  return JSON.stringify({
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'scripted',
    choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }],
    usage,
  });
}

function response(output: unknown[]): string {
  return JSON.stringify({
    id: 'resp_1',
    object: 'response',
    status: 'completed',
    model: 'scripted',
    output,
    usage: { input_tokens: 3, output_tokens: 5, total_tokens: 8 },
  });
}

const outputMessage = (content: unknown[], id = 'msg_1') => ({
  type: 'message',
  id,
  role: 'assistant',
  status: 'completed',
  content,
});
const outputText = (value: string) => ({ type: 'output_text', text: value, annotations: [] });

/** One text of a length, whole, in each wire. */
export const wholeTexts: Readonly<Partial<Record<Wire, (bytes: number) => Buffer>>> = {
  'openai-chat': (bytes) => whole(completion({ content: text(bytes) })),
  'openai-responses': (bytes) => whole(response([outputMessage([outputText(text(bytes))])])),
  'anthropic-messages': (bytes) =>
    whole(
      JSON.stringify({
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'scripted',
        content: [{ type: 'text', text: text(bytes) }],
        stop_reason: 'end_turn',
        usage: { input_tokens: 3, output_tokens: 5 },
      }),
    ),
  'gemini-generate-content': (bytes) =>
    whole(
      JSON.stringify({
        candidates: [{ content: { role: 'model', parts: [{ text: text(bytes) }] }, finishReason: 'STOP', index: 0 }],
        usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 5, totalTokenCount: 8 },
      }),
    ),
  'bedrock-converse': (bytes) =>
    whole(
      JSON.stringify({
        output: { message: { role: 'assistant', content: [{ text: text(bytes) }] } },
        stopReason: 'end_turn',
        usage: { inputTokens: 3, outputTokens: 5, totalTokens: 8 },
      }),
    ),
  'cohere-chat': (bytes) =>
    whole(
      JSON.stringify({
        id: 'c',
        finish_reason: 'COMPLETE',
        message: { role: 'assistant', content: [{ type: 'text', text: text(bytes) }] },
        usage: { tokens: { input_tokens: 3, output_tokens: 5 } },
      }),
    ),
};

/** One text of another kind, and a text whose characters take two bytes each because one of them does. */
export const wholeReasoning = (bytes: number) => whole(completion({ content: 'a', reasoning: text(bytes) }));
export const wholeRefusal = (bytes: number) => whole(completion({ content: null, refusal: text(bytes) }));
export const wholeWideText = (bytes: number) => whole(completion({ content: `${text(bytes - 3)}彼` }));
export const wholeImage = (bytes: number) =>
  whole(
    completion({
      content: 'a',
      images: [
        {
          type: 'image_url',
          image_url: { url: `data:image/png;base64,${'iVBORw0KGgoAAAANSUhEUgAA'.repeat(bytes / 24)}` },
        },
      ],
    }),
  );
export const wholeCitedText = (bytes: number) =>
  whole(
    response([
      outputMessage([
        {
          ...outputText(text(bytes)),
          annotations: [{ type: 'url_citation', url: 'https://a.example', title: 'A', start_index: 1, end_index: 5 }],
        },
      ]),
    ]),
  );
/** As many nearly empty parts as the bytes allow. */
export const shortParts = (bytes: number) =>
  whole(response([outputMessage(times(Math.min(bytes / 40, 24_000), () => ({ type: 'output_text', text: 'a' })))]));
export const shortCalls = (bytes: number) =>
  whole(
    completion({
      content: null,
      tool_calls: times(Math.min(bytes / 80, 14_000), (at) => ({
        id: `c${at}`,
        type: 'function',
        function: { name: 'f', arguments: '{}' },
      })),
    }),
  );

const CALLS = 1_990;
const TEXTS = 19_000;

export const wholeCalls: Readonly<Partial<Record<Wire, (bytes: number) => Buffer>>> = {
  'openai-chat': (bytes) =>
    whole(
      completion({
        content: null,
        tool_calls: times(CALLS, (at) => ({
          id: `call_${at}`,
          type: 'function',
          function: { name: 'f', arguments: JSON.stringify({ text: text(bytes / CALLS) }) },
        })),
      }),
    ),
  'openai-responses': (bytes) =>
    whole(
      response(
        times(CALLS, (at) => ({
          type: 'function_call',
          id: `fc_${at}`,
          call_id: `call_${at}`,
          name: 'f',
          arguments: JSON.stringify({ text: text(bytes / CALLS) }),
          status: 'completed',
        })),
      ),
    ),
};

export const wholeParts = (bytes: number) =>
  whole(response([outputMessage(times(TEXTS, () => outputText(text(bytes / TEXTS))) as unknown[])]));

const chunk = (content: string, finishReason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'scripted', choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: finishReason }] })}\n\n`;
const END = `${chunk('', 'stop')}data: [DONE]\n\n`;
const SINGLE_BYTES_MAX = 4e6;
const EVENT_BYTES_MAX = 15e6;

export const singleBytes = (bytes: number) =>
  inSingleBytes(completion({ content: text(Math.min(bytes, SINGLE_BYTES_MAX)) }));
export const streamedSingleBytes = (bytes: number) => {
  const one = chunk('word ');
  return inSingleBytes(one.repeat(Math.min(bytes, SINGLE_BYTES_MAX) / one.length) + END, EVENTS_TYPE);
};
/** One event with many nearly empty lines. */
export const dataLines = (bytes: number) => whole(`${chunk('a')}${'data:\n'.repeat(bytes / 6)}\n\n${END}`, EVENTS_TYPE);
export const shortDataLines = (bytes: number) =>
  whole(`${chunk('a')}${'data: ,\n'.repeat(bytes / 8)}\n\n${END}`, EVENTS_TYPE);
export const comments = (bytes: number) => whole(`${chunk('a')}${':\n'.repeat(bytes / 2)}${END}`, EVENTS_TYPE);
export const emptyLines = (bytes: number) => whole(`${chunk('a')}${'\n'.repeat(bytes)}${END}`, EVENTS_TYPE);
export const eventNames = (bytes: number) => whole(`${chunk('a')}${'event: a\n'.repeat(bytes / 9)}${END}`, EVENTS_TYPE);
export const strayLines = (bytes: number) => whole(`${chunk('a')}${'{\n'.repeat(bytes / 2)}${END}`, EVENTS_TYPE);
export const oneEvent = (bytes: number) => whole(`${chunk(text(Math.min(bytes, EVENT_BYTES_MAX)))}${END}`, EVENTS_TYPE);
export const manyEvents = (bytes: number) => {
  const one = chunk('word ');
  return whole(one.repeat(bytes / one.length) + END, EVENTS_TYPE);
};
export const shortestEvents = (bytes: number) =>
  whole(`${chunk('a')}${'data:{}\n\n'.repeat(bytes / 9)}${END}`, EVENTS_TYPE);

const TOKEN = { token: ' on', logprob: -0.5, bytes: [32, 111, 110] };
const probability = {
  ...TOKEN,
  top_logprobs: Array.from({ length: 20 }, (_, at) => ({ ...TOKEN, logprob: -at })),
};
const PROBABILITY_CHARS = JSON.stringify(probability).length + 1;
const probabilities = (bytes: number) => ({
  content: Array.from({ length: Math.max(1, Math.floor(bytes / PROBABILITY_CHARS)) }, () => probability),
});
/** The probabilities of as many tokens as the bytes allow. */
export const wholeProbabilities = (bytes: number) => {
  const logprobs = probabilities(bytes);
  const body = JSON.parse(completion({ content: ' on'.repeat(logprobs.content.length) })) as { choices: object[] };
  body.choices = [{ ...body.choices[0], logprobs }];
  return whole(JSON.stringify(body));
};
const probableChunk = (logprobs: ReturnType<typeof probabilities>) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'scripted', choices: [{ index: 0, delta: { role: 'assistant', content: ' on'.repeat(logprobs.content.length) }, logprobs, finish_reason: null }] })}\n\n`;
export const streamedProbabilities = (bytes: number) => {
  const one = probableChunk(probabilities(1));
  return whole(one.repeat(bytes / one.length) + END, EVENTS_TYPE);
};
export const oneEventOfProbabilities = (bytes: number) =>
  whole(probableChunk(probabilities(Math.min(bytes, EVENT_BYTES_MAX))) + END, EVENTS_TYPE);

/** Texts for filters: only matches, and possible beginnings of matches at each place. */
export const wholeFindings = (bytes: number) => whole(completion({ content: 'ada@example.com, '.repeat(bytes / 17) }));
export const wholeDigits = (bytes: number) => whole(completion({ content: '4111 1111 '.repeat(bytes / 10) }));
