/** Recorded answers of real providers on every wire, sent by a scripted upstream behind a running gateway. */
import type { Wire } from '../../src/schemas/inner.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { messagesBytes, SPLICED } from '../readings/anthropic-messages.ts';
import { converseBytes, isClaude } from '../readings/bedrock-converse.ts';
import { type ClientReading, readAnswer, readStream } from '../readings/client.ts';
import { cohereBytes } from '../readings/cohere-chat.ts';
import { geminiBytes, isGeminiStream, LIVE, readGemini } from '../readings/gemini-generate-content.ts';
import { chatBytes } from '../readings/openai-chat.ts';
import { NO_ANSWER, responsesBytes } from '../readings/openai-responses.ts';
import { type NamedRecording, object, type Recording, recordingsOf } from '../readings/recordings.ts';
import { responseHead, slices, startWireServer, type WireServer } from './wire-server.ts';

export interface RecordedAnswer extends NamedRecording {
  wire: Wire;
  /** The model of the gateway that answers with it. */
  model: string;
  bytes: Uint8Array;
  kind: 'whole' | 'stream' | 'error' | 'no answer';
}

const STREAMS: Readonly<Record<Wire, (recording: Recording) => Uint8Array>> = {
  'openai-chat': chatBytes,
  'openai-responses': responsesBytes,
  'anthropic-messages': messagesBytes,
  'gemini-generate-content': geminiBytes,
  'bedrock-converse': converseBytes,
  'cohere-chat': cohereBytes,
};

/** Upstreams cut their streams into parts of this size, so that events are split within words and characters. */
const PART_BYTES = 53;

/** Every recorded answer of a wire; empty if the recordings are absent. */
export function recordedAnswers(wire: Wire): RecordedAnswer[] {
  return recordingsOf(wire).map(({ name, recording }, i) => {
    const { status, json } = recording.response;
    const isGemini = wire === 'gemini-generate-content';
    const isStream = isGemini ? isGeminiStream(recording) : json === undefined;
    const isNone =
      SPLICED.has(name) ||
      LIVE.has(name) ||
      (wire === 'openai-responses' && name in NO_ANSWER) ||
      (isGemini && status === 200 && readGemini(recording).finish === 'error');
    return {
      wire,
      name,
      recording,
      model: `recorded/${familyOf(wire, recording)}-${i}`,
      bytes: isGemini || isStream ? STREAMS[wire](recording) : Buffer.from(JSON.stringify(json)),
      kind: isNone ? 'no answer' : status !== 200 ? 'error' : isStream ? 'stream' : 'whole',
    };
  });
}

/** Some dialects derive from a model's name what it accepts and whose reasoning state it has. */
function familyOf(wire: Wire, recording: Recording): string {
  if (wire === 'gemini-generate-content') return 'gemini-3-flash';
  if (wire === 'bedrock-converse') return isClaude(recording) ? 'claude-sonnet-4-5' : 'bedrock';
  return wire;
}

export interface RecordedGateway {
  gateway: TestGateway;
  upstream: WireServer;
  stop(): Promise<void>;
}

/** Starts a gateway whose upstream answers each model with its recording. */
export async function startRecordedGateway(answers: readonly RecordedAnswer[]): Promise<RecordedGateway> {
  const byModel = new Map(answers.map((answer) => [answer.model, answer]));
  const upstream = await startWireServer(({ path, body }) => {
    const inPath = /\/models?\/([^/:]+(?:%2F[^/:]+)?)[/:]/.exec(path)?.[1];
    const model = inPath === undefined ? String(object(JSON.parse(body))['model']) : decodeURIComponent(inPath);
    const { wire, recording, kind, bytes } = byModel.get(model)!;
    const isStream = kind === 'stream' || (kind === 'no answer' && recording.response.json === undefined);
    const type = wire === 'bedrock-converse' ? 'application/vnd.amazon.eventstream' : 'text/event-stream';
    const head = responseHead(recording.response.status, isStream ? type : 'application/json');
    return [head, ...(isStream ? slices(bytes, PART_BYTES) : [bytes]), 'END'];
  });
  const pricing = { prompt: 1, completion: 2 };
  const inputModalities = ['text', 'image', 'file', 'audio', 'video'];
  const models = Object.fromEntries(
    answers.map(({ model, wire }) => [
      model,
      { input_modalities: inputModalities, endpoints: [{ provider: wire, upstream_model: model, pricing }] },
    ]),
  );
  const aws = JSON.stringify({ accessKeyId: 'a', secretAccessKey: 'b', region: 'eu-west-1' });
  const providers = Object.fromEntries(
    [...new Set(answers.map(({ wire }) => wire))].map((wire) => [
      wire,
      {
        name: `Recorded ${wire}`,
        dialect: wire,
        // Like a hosted provider that fetches by itself.
        quirks: { inline_media: false },
        base_url: upstream.url,
        api_key: wire === 'bedrock-converse' ? aws : 'secret',
      },
    ]),
  );
  const file = { bundled_catalog: false, providers, models, ledger: { journal_sync: 'os' } };
  const gateway = await startGateway({ yaml: JSON.stringify(file) });
  return {
    gateway,
    upstream,
    async stop() {
      await gateway.stop();
      await upstream.stop();
    },
  };
}

/**
 * The content of the gateway's own chat answer to a recording, which tests of each wire compare with the recorded
 * bytes.
 */
export async function chatReading(
  { gateway }: RecordedGateway,
  { model, kind }: RecordedAnswer,
): Promise<ClientReading> {
  const messages = [{ role: 'user', content: 'Go on.' }];
  const response = await gateway.call('POST', '/chat/completions', { model, messages, stream: kind === 'stream' });
  const body = await response.text();
  if (response.status !== 200) throw new Error(`${response.status} ${body.slice(0, 500)}`);
  return kind === 'stream' ? readStream(body) : readAnswer(object(JSON.parse(body)));
}
