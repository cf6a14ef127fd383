import { describe, expect, test } from 'vitest';
import { anthropicMessages } from '../../sandbox/anthropic-messages.ts';
import { bedrockConverse } from '../../sandbox/bedrock-converse.ts';
import { cohereChat } from '../../sandbox/cohere-chat.ts';
import { geminiGenerateContent } from '../../sandbox/gemini-generate-content.ts';
import { openAiChat } from '../../sandbox/openai-chat.ts';
import { openAiResponses } from '../../sandbox/openai-responses.ts';
import { Refusal } from '../../sandbox/prompt.ts';
import type { SandboxWire } from '../../sandbox/wire.ts';
import {
  type AttemptState,
  type ChatDialect,
  type DialectEndpoint,
  UpstreamError,
} from '../../src/providers/dialect.ts';
import { dialects } from '../../src/providers/dialects.ts';
import { createFramer } from '../../src/providers/transport/frames.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { ChatCompletion, ChatRequest, Message, Wire } from '../../src/schemas/inner.ts';
import { messagesBytes } from '../readings/anthropic-messages.ts';
import { converseBytes } from '../readings/bedrock-converse.ts';
import { cohereBytes } from '../readings/cohere-chat.ts';
import { geminiBytes } from '../readings/gemini-generate-content.ts';
import { chatBytes } from '../readings/openai-chat.ts';
import { responsesBytes } from '../readings/openai-responses.ts';
import { object, type Recording, recordingsOf, whySkipped } from '../readings/recordings.ts';

/** Every recorded answer that calls tools continues over every other wire with a request that the wire accepts. */

interface Peer {
  /** How to get the recorded stream of this wire as bytes. */
  bytes(recording: Recording): Uint8Array;
  sandbox: SandboxWire;
  /** A reasoning model. */
  upstream_model: string;
}

const peers: Record<Wire, Peer> = {
  'openai-chat': { bytes: chatBytes, sandbox: openAiChat, upstream_model: 'gpt-5.4' },
  'openai-responses': { bytes: responsesBytes, sandbox: openAiResponses, upstream_model: 'gpt-5.4' },
  'anthropic-messages': { bytes: messagesBytes, sandbox: anthropicMessages, upstream_model: 'claude-sonnet-4-5' },
  'gemini-generate-content': {
    bytes: geminiBytes,
    sandbox: geminiGenerateContent,
    upstream_model: 'gemini-3-pro-preview',
  },
  'bedrock-converse': {
    bytes: converseBytes,
    sandbox: bedrockConverse,
    upstream_model: 'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
  },
  'cohere-chat': { bytes: cohereBytes, sandbox: cohereChat, upstream_model: 'command-a-reasoning-08-2025' },
};

const STATE: AttemptState = { generation_id: 'gen-recorded' };

/** The recorded answer in the inner language; undefined if it is an error or not an answer of this wire. */
function answerOf(dialect: ChatDialect, recording: Recording): ChatCompletion | undefined {
  const { status, json } = recording.response;
  if (status !== 200) return undefined;
  try {
    if (json !== undefined && !Array.isArray(json)) return accumulate(dialect.decodeResponse(json, STATE), 0);
    const framer = createFramer(dialect.frames);
    const decoder = dialect.createStreamDecoder(STATE);
    const frames = [...framer.push(peers[dialect.wire].bytes(recording)), ...framer.end()];
    return accumulate([...frames.flatMap((frame) => decoder.push(frame)), ...decoder.end()], 0);
  } catch (error) {
    // Other tests compare these recordings with the dialects.
    if (error instanceof UpstreamError) return undefined;
    throw error;
  }
}

/** As a chat client has it, without members that never leave the gateway. */
function shown(message: Message): Message {
  return JSON.parse(JSON.stringify(message, (name, value) => (name === 'ext' ? undefined : value))) as Message;
}

function goingOn(message: Message): ChatRequest {
  const calls = message.tool_calls ?? [];
  const names = [...new Set(calls.map((call) => call.function.name))];
  return {
    messages: [
      { role: 'user', content: 'Go ahead.' },
      { ...message, role: 'assistant' },
      ...calls.map(({ id }): Message => ({ role: 'tool', tool_call_id: id, content: 'It is 7.' })),
    ],
    tools: names.map((name) => ({ type: 'function', function: { name, parameters: { type: 'object' } } })),
    reasoning: { effort: 'high' },
    max_tokens: 16_000,
  } as ChatRequest;
}

function endpointOf(wire: Wire): DialectEndpoint {
  return {
    model: 'maker/model',
    provider: 'host',
    upstream_model: peers[wire].upstream_model,
    max_completion_tokens: 32_000,
    context_length: 200_000,
    input_modalities: ['text', 'image', 'file'],
    quirks: {},
  };
}

for (const [first, from] of dialects) {
  const recordings = recordingsOf(first);
  describe.skipIf(recordings.length === 0)(`answers over ${first}${whySkipped(recordings, first)}`, () => {
    const turns = recordings.flatMap(({ name, recording }) => {
      const message = answerOf(from, recording)?.choices[0].message;
      return message?.tool_calls?.length ? [{ name, message }] : [];
    });

    test('some of them call tools', () => expect(turns.length).toBeGreaterThan(0));

    for (const [second, to] of dialects) {
      // Opaque state of the real service: the sandbox accepts only its own.
      if (second === first) continue;
      test.each(turns)(`continue over ${second}: $name`, ({ message }) => {
        for (const turn of [message, shown(message)]) {
          const { body, headers } = to.encodeRequest(goingOn(turn), endpointOf(second), {
            media: new Map(),
            strip_state: false,
          });
          try {
            peers[second].sandbox.check(body, headers);
          } catch (error) {
            if (!(error instanceof Refusal)) throw error;
            expect.fail(`${error.message}\n${JSON.stringify(object(body), null, 1).slice(0, 4_000)}`);
          }
        }
      });
    }
  });
}
