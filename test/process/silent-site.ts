import { onTestFinished } from 'vitest';
import { responseHead, type Step, startWireServer, type WireServer } from '../wires/wire-server.ts';
import { freePort, freshDir, type StartOptions } from './gateway-process.ts';

/** In USD, for a prompt token and for an output token. */
export const PROMPT_USD = 0.000_1;
export const COMPLETION_USD = 0.001;

const chunk = (content: string) =>
  `data: ${JSON.stringify({ id: 'up-1', object: 'chat.completion.chunk', created: 1, model: 'x', choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }] })}\n\n`;

/** The tokens of the answer to a prompt with `finish`, the only answer that ends. */
export const FINISHED_TOKENS = 40;
const WHOLE = JSON.stringify({
  ...{ id: 'up-2', object: 'chat.completion', created: 1, model: 'x' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'The end.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: FINISHED_TOKENS, total_tokens: 10 + FINISHED_TOKENS },
});

const head = responseHead(200, 'text/event-stream');

/**
 * The answers of an upstream that never end: of streams the beginning, for a prompt with `mute` only the head, with
 * `flood` endless content; of whole answers nothing.
 */
function beginning(body: string): Step[] {
  if (body.includes('finish'))
    return [responseHead(200, 'application/json', { 'content-length': `${WHOLE.length}` }), WHOLE];
  if (!body.includes('"stream":true')) return [];
  if (body.includes('mute')) return [head];
  return body.includes('flood') ? [head, { repeat: chunk('x'.repeat(60_000)), times: 100_000 }] : [head, chunk('Once')];
}

/**
 * The options of a gateway whose upstream ends no answer: models for text, vectors and speech. Callers have no limits
 * unless their key has one.
 */
export async function silentSite(more: object = {}): Promise<{ wire: WireServer; options: StartOptions }> {
  const wire = await startWireServer(({ body }) => beginning(body));
  onTestFinished(() => wire.stop());
  const pricing = { prompt: PROMPT_USD * 1e6, completion: COMPLETION_USD * 1e6 };
  const endpoints = [{ provider: 'wire', upstream_model: 'x', pricing }];
  const yaml = JSON.stringify({
    bundled_catalog: false,
    providers: { wire: { dialect: 'openai-chat', base_url: wire.url } },
    models: {
      'wire/text': { context_length: 100_000, endpoints },
      'wire/vectors': { output_modalities: ['embeddings'], endpoints },
      'wire/speech': { input_modalities: ['audio'], output_modalities: ['transcription'], endpoints },
    },
    ...more,
  });
  return { wire, options: { data_dir: freshDir(), port: await freePort(), yaml } };
}

/** The generation to which a request to an upstream belongs. */
export function generationOf({ headers }: WireServer['exchanges'][number]): string {
  return (headers['x-client-request-id'] ?? '').replace(/\.\d+$/, '');
}

/** A second of silence, as a WAV file in base64. */
export function silentSound(): string {
  const rate = 8_000;
  const bytes = Buffer.alloc(44 + rate);
  bytes.write('RIFF', 0);
  bytes.writeUInt32LE(36 + rate, 4);
  bytes.write('WAVEfmt ', 8);
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(1, 22);
  bytes.writeUInt32LE(rate, 24);
  bytes.writeUInt32LE(rate, 28);
  bytes.writeUInt16LE(1, 32);
  bytes.writeUInt16LE(8, 34);
  bytes.write('data', 36);
  bytes.writeUInt32LE(rate, 40);
  return bytes.toString('base64');
}
