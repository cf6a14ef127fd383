/** Every recorded answer, sent to a client of each API, whole and streamed. */

import { dialects } from '../../src/providers/dialects.ts';
import type { Wire } from '../../src/schemas/inner.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { readRequest } from '../readings/embeddings.ts';
import { chatBytes } from '../readings/openai-chat.ts';
import { responsesBytes } from '../readings/openai-responses.ts';
import { recordingsOf } from '../readings/recordings.ts';
import { type RecordedAnswer, recordedAnswers } from '../wires/recorded-upstream.ts';
import { responseHead, type Step, slices } from '../wires/wire-server.ts';
import { apiOf, clientApis, paths, plainRequest, recordedRequest } from './clients.ts';
import type { GroupRun, ReplayExchange, ReplayGroup } from './run-group.ts';

const AWS = JSON.stringify({ accessKeyId: 'a', secretAccessKey: 'b', region: 'eu-west-1' });
/** A price for each class of tokens, so that a token that changes its class changes the cost. */
export const PRICING = {
  prompt: 1,
  completion: 2,
  internal_reasoning: 3,
  input_cache_read: 0.1,
  input_cache_write: 1.25,
  input_cache_write_1h: 2.5,
  image_token: 5,
  image_output: 7,
  audio: 11,
  audio_output: 13,
  input_audio_cache: 0.3,
  request: 0.001,
  image: 0.002,
  web_search: 0.01,
};
/** Milliseconds from a request to the head of its answer, and from there to its rest. */
const HEAD_MS = 250;
const REST_MS = 500;
/** The number of reads of a stream. */
const PARTS = 8;

/** A configuration with a provider for each wire, and models of them. */
export function fileOf(upstreamUrl: string, models: Record<string, object>): object {
  const providers = Object.fromEntries(
    [...dialects.keys()].map((wire) => [
      wire,
      {
        name: `Recorded ${wire}`,
        dialect: wire,
        base_url: upstreamUrl,
        api_key: wire === 'bedrock-converse' ? AWS : 'secret',
        // Like a hosted provider that fetches by itself.
        quirks: { inline_media: false, unpriced_tools: true },
      },
    ]),
  );
  // No heartbeat, not even on a busy machine.
  const timeouts = { heartbeat_first_ms: 600_000, heartbeat_ms: 600_000 };
  return { bundled_catalog: false, timeouts, providers, models, ledger: { journal_sync: 'os' } };
}

/** An answer as it arrives from a distant provider: the head, and later the rest. */
export function answerSteps(run: GroupRun, head: string, bytes: Uint8Array, isStream: boolean): Step[] {
  if (!isStream) return [run.pass(HEAD_MS), head, run.pass(REST_MS), bytes, 'END'];
  const parts = slices(bytes, Math.max(1, Math.ceil(bytes.length / PARTS)));
  const half = Math.ceil(parts.length / 2);
  return [run.pass(HEAD_MS), head, ...parts.slice(0, half), run.pass(REST_MS), ...parts.slice(half), 'END'];
}

/** Recordings of the public service have two wires, named by their paths. */
function referenceAnswers(): RecordedAnswer[] {
  return recordingsOf('reference-gateway').flatMap(({ name, recording }, i): RecordedAnswer[] => {
    const api = apiOf(recording);
    if (api === undefined) return [];
    const { status, json } = recording.response;
    const streamed = api === 'chat' ? chatBytes : responsesBytes;
    return [
      {
        name,
        recording,
        wire: api === 'chat' ? 'openai-chat' : 'openai-responses',
        model: `recorded/reference-${i}`,
        bytes: json === undefined ? streamed(recording) : Buffer.from(JSON.stringify(json)),
        kind: status !== 200 ? 'error' : json === undefined ? 'stream' : 'whole',
      },
    ];
  });
}

function exchangesOf(run: GroupRun, answer: RecordedAnswer): ReplayExchange[] {
  const { wire, name, model, recording, kind, bytes } = answer;
  const isStream = kind === 'stream' || (kind === 'no answer' && recording.response.json === undefined);
  const type = wire === 'bedrock-converse' ? 'application/vnd.amazon.eventstream' : 'text/event-stream';
  const head = responseHead(recording.response.status, isStream ? type : 'application/json');
  const upstream = () => answerSteps(run, head, bytes, isStream);
  const of = (what: string, path: string, body: JsonObject): ReplayExchange => ({
    name: `${name.replace(/\.json$/, '')}/${what}`,
    path,
    body,
    upstream,
  });
  const own = apiOf(recording);
  return [false, true].flatMap((stream) => {
    const form = stream ? 'stream' : 'whole';
    const plain = clientApis.map((api) => of(`${api} ${form}`, paths[api], { ...plainRequest(api), model, stream }));
    if (own === undefined) return plain;
    return [...plain, of(`own ${form}`, paths[own], recordedRequest(recording, model, stream))];
  });
}

function answerGroup(name: string, answers: () => RecordedAnswer[]): (run: GroupRun) => ReplayGroup {
  return (run) => {
    const all = answers();
    const models = Object.fromEntries(
      all.map(({ model, wire }) => [
        model,
        {
          input_modalities: ['text', 'image', 'file', 'audio', 'video'],
          output_modalities: ['text', 'image', 'audio'],
          context_length: 1_000_000,
          endpoints: [{ provider: wire, upstream_model: model, pricing: PRICING, max_completion_tokens: 64_000 }],
        },
      ]),
    );
    return {
      name: `answers/${name}`,
      file: (url) => fileOf(url, models),
      exchanges: all.flatMap((answer) => exchangesOf(run, answer)),
    };
  };
}

/** Each recorded provider of embeddings with its wire, and the beginning of its paths. */
const VECTOR_WIRES: Readonly<Record<string, readonly [wire: string, base: string]>> = {
  openai: ['openai-embeddings', '/v1'],
  cohere: ['cohere-embeddings', '/v2'],
  'google-ai-studio': ['gemini-embeddings', '/v1beta'],
  voyage: ['voyage-embeddings', '/v1'],
};

function vectorGroup(run: GroupRun): ReplayGroup {
  const all = recordingsOf('embeddings').map((one) => ({ ...one, request: readRequest(one.recording) }));
  const models = all.map(({ request: { provider, model } }): [string, object] => [
    `rec-${provider}/${model}`,
    {
      output_modalities: ['embeddings'],
      endpoints: [{ provider: `rec-${provider}`, upstream_model: model, pricing: { prompt: 0.1 } }],
    },
  ]);
  return {
    name: 'answers/embeddings',
    file: (upstreamUrl) => ({
      bundled_catalog: false,
      providers: Object.fromEntries(
        Object.entries(VECTOR_WIRES).map(([slug, [wire, base]]) => [
          `rec-${slug}`,
          { dialect: 'openai-chat', embeddings_dialect: wire, base_url: new URL(base, upstreamUrl).href },
        ]),
      ),
      models: Object.fromEntries(models),
      ledger: { journal_sync: 'os' },
    }),
    exchanges: all.flatMap(({ name, recording, request }) =>
      (['float', 'base64'] as const).map((encodingFormat): ReplayExchange => {
        const { status, json } = recording.response;
        const { provider, model, texts, dimensions, input_type, options } = request;
        return {
          name: `${name.replace(/\.json$/, '')}/${encodingFormat}`,
          path: '/embeddings',
          body: {
            model: `rec-${provider}/${model}`,
            input: texts,
            encoding_format: encodingFormat,
            ...(dimensions === undefined ? {} : { dimensions }),
            ...(input_type === undefined ? {} : { input_type }),
            ...(options === undefined ? {} : { provider: { options: { [`rec-${provider}`]: options as JsonObject } } }),
          },
          upstream: () =>
            answerSteps(run, responseHead(status, 'application/json'), Buffer.from(JSON.stringify(json)), false),
        };
      }),
    ),
  };
}

export const answerGroups: readonly ((run: GroupRun) => ReplayGroup)[] = [
  ...[...dialects.keys()].map((wire: Wire) => answerGroup(wire, () => recordedAnswers(wire))),
  answerGroup('reference-gateway', referenceAnswers),
  vectorGroup,
];
