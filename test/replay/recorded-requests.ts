/** Every recorded request of a client API, sent over each wire: what reaches the upstream, and its hold. */
import { dialects } from '../../src/providers/dialects.ts';
import type { Wire } from '../../src/schemas/inner.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { recordingsOf } from '../readings/recordings.ts';
import { responseHead } from '../wires/wire-server.ts';
import { apiOf, paths, recordedRequest } from './clients.ts';
import { answerSteps, fileOf, PRICING } from './recorded-answers.ts';
import type { GroupRun, ReplayGroup } from './run-group.ts';

const TEXT = 'Yes.';
const OPENAI_USAGE = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };
const ANTHROPIC_USAGE = { input_tokens: 5, output_tokens: 2 };

/** The shortest whole answer of each wire. */
const SHORT_ANSWERS: Readonly<Record<Wire, JsonObject>> = {
  'openai-chat': {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'short',
    choices: [{ index: 0, message: { role: 'assistant', content: TEXT }, finish_reason: 'stop' }],
    usage: OPENAI_USAGE,
  },
  'openai-responses': {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'short',
    output: [
      {
        type: 'message',
        id: 'msg_1',
        status: 'completed',
        role: 'assistant',
        content: [{ type: 'output_text', text: TEXT, annotations: [] }],
      },
    ],
    usage: { ...ANTHROPIC_USAGE, total_tokens: 7 },
  },
  'anthropic-messages': {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'short',
    content: [{ type: 'text', text: TEXT }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: ANTHROPIC_USAGE,
  },
  'gemini-generate-content': {
    candidates: [{ index: 0, content: { role: 'model', parts: [{ text: TEXT }] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 2, totalTokenCount: 7 },
    modelVersion: 'short',
    responseId: 'response-1',
  },
  'bedrock-converse': {
    output: { message: { role: 'assistant', content: [{ text: TEXT }] } },
    stopReason: 'end_turn',
    usage: { inputTokens: 5, outputTokens: 2, totalTokens: 7 },
    metrics: { latencyMs: 1 },
  },
  'cohere-chat': {
    id: 'cohere-1',
    finish_reason: 'COMPLETE',
    message: { role: 'assistant', content: [{ type: 'text', text: TEXT }] },
    usage: { billed_units: ANTHROPIC_USAGE, tokens: ANTHROPIC_USAGE },
  },
};

/** A reasoning model of each wire, by the provider's own name. */
const MODELS: Readonly<Record<Wire, string>> = {
  'openai-chat': 'gpt-5.4',
  'openai-responses': 'gpt-5.4',
  'anthropic-messages': 'claude-sonnet-4-5',
  'gemini-generate-content': 'gemini-3-pro-preview',
  'bedrock-converse': 'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
  'cohere-chat': 'command-a-reasoning-08-2025',
};

const SOURCES = ['openai-chat', 'openai-responses', 'anthropic-messages', 'reference-gateway'];

function requestGroup(source: string): (run: GroupRun) => ReplayGroup {
  return (run) => {
    const models = Object.fromEntries(
      Object.entries(MODELS).map(([wire, upstreamModel]) => [
        `replay/${wire}`,
        {
          input_modalities: ['text', 'image', 'file', 'audio', 'video'],
          output_modalities: ['text', 'image'],
          context_length: 1_000_000,
          endpoints: [
            { provider: wire, upstream_model: upstreamModel, pricing: PRICING, max_completion_tokens: 64_000 },
          ],
        },
      ]),
    );
    return {
      name: `requests/${source}`,
      file: (url) => fileOf(url, models),
      exchanges: recordingsOf(source).flatMap(({ name, recording }) => {
        const api = apiOf(recording);
        if (api === undefined) return [];
        return [...dialects.keys()].map((wire) => ({
          name: `${name.replace(/\.json$/, '')}/${wire}`,
          path: paths[api],
          body: recordedRequest(recording, `replay/${wire}`, false),
          upstream: () =>
            answerSteps(
              run,
              responseHead(200, 'application/json'),
              Buffer.from(JSON.stringify(SHORT_ANSWERS[wire])),
              false,
            ),
        }));
      }),
    };
  };
}

export const requestGroups: readonly ((run: GroupRun) => ReplayGroup)[] = SOURCES.map(requestGroup);
