import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Catalog } from '../catalog/catalog.ts';
import type { Config } from '../config.ts';
import { createLog } from '../telemetry/log.ts';
import { type CheapOutput, cheapModel } from './example-model.ts';
import { catalogOf, startGateway } from './start-gateway.ts';

/** The result of one short request to one provider. */
export interface CheckedProvider {
  provider: string;
  /** The model that was called. */
  model?: string;
  ms?: number;
  /** USD. */
  cost?: number;
  /** Why it did not answer; undefined if it did. */
  failure?: string;
  /** Why it was not called; undefined if it was. */
  skipped?: string;
}

const CHECK_MS_MAX = 60_000;
/** Some providers accept no smaller bound. */
const OUTPUT_TOKENS = 16;

/**
 * Sends each provider one short request, all at once, through a gateway of the same configuration with a store of its own.
 * This checks the path of real requests, without changing a record of the real gateway.
 */
export async function checkProviders(config: Config): Promise<CheckedProvider[]> {
  const dataDir = temporaryFolder(config);
  let apiKey: string | undefined;
  try {
    const gateway = await startGateway({
      config: alone(config, dataDir),
      log: createLog('silent'),
      onFirstKeys(keys) {
        apiKey = keys.api_key;
      },
    });
    try {
      const catalog = catalogOf(config).at(Date.now());
      const call = callerFor(`${gateway.url}/api/v1`, apiKey ?? '');
      return await Promise.all(config.providers.map(({ slug }) => check(slug, catalog, call)));
    } finally {
      await gateway.stop();
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** In a container with a read-only root, only the data directory is writable. */
function temporaryFolder(config: Config): string {
  try {
    return mkdtempSync(join(tmpdir(), 'gateway-check-'));
  } catch {
    return mkdtempSync(join(config.data_dir, 'gateway-check-'));
  }
}

/** The configuration of a gateway that serves this command only. */
function alone(config: Config, dataDir: string): Config {
  return {
    ...config,
    data_dir: dataDir,
    host: '127.0.0.1',
    port: 0,
    database_url: undefined,
    listen_url: undefined,
    management_key: undefined,
    first_keys: { ordinary: 'on', limit_nano: undefined, are_printed: true },
    metrics: { token: undefined, listen: undefined },
    sandbox: false,
    probes: null,
  };
}

async function check(provider: string, catalog: Catalog, call: CallModel): Promise<CheckedProvider> {
  for (const kind of ['text', 'embeddings', 'transcription'] as const) {
    const model = cheapModel(catalog, kind, provider);
    if (model !== undefined) return call(provider, model.id, kind);
  }
  return {
    provider,
    skipped: 'the catalog has no chat, embedding or transcription model of this provider with a known price',
  };
}

type CallModel = (provider: string, model: string, kind: CheapOutput) => Promise<CheckedProvider>;

const SAMPLES_PER_SECOND = 16_000;

/** A second of silence as WAV: one channel of 16 bits (http://soundfile.sapp.org/doc/WaveFormat/). */
function silence(): Buffer {
  const bytes = SAMPLES_PER_SECOND * 2;
  const wav = Buffer.alloc(44 + bytes);
  wav.write('RIFF', 0, 'latin1');
  wav.writeUInt32LE(36 + bytes, 4);
  wav.write('WAVEfmt ', 8, 'latin1');
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20);
  wav.writeUInt16LE(1, 22);
  wav.writeUInt32LE(SAMPLES_PER_SECOND, 24);
  wav.writeUInt32LE(bytes, 28);
  wav.writeUInt16LE(2, 32);
  wav.writeUInt16LE(16, 34);
  wav.write('data', 36, 'latin1');
  wav.writeUInt32LE(bytes, 40);
  return wav;
}

/** The path and the body of a short request. */
function requestOf(kind: CheapOutput): { path: string; body: object } {
  const text = 'Answer with OK.';
  switch (kind) {
    case 'text':
      return {
        path: 'chat/completions',
        body: { messages: [{ role: 'user', content: text }], max_tokens: OUTPUT_TOKENS },
      };
    case 'embeddings':
      return { path: 'embeddings', body: { input: text } };
    case 'transcription':
      return {
        path: 'audio/transcriptions',
        body: { input_audio: { data: silence().toString('base64'), format: 'wav' } },
      };
  }
}

function callerFor(baseUrl: string, apiKey: string): CallModel {
  return async (provider, model, kind) => {
    const from = performance.now();
    const { path, body } = requestOf(kind);
    try {
      const response = await fetch(`${baseUrl}/${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ ...body, model, provider: { only: [provider], allow_fallbacks: false } }),
        signal: AbortSignal.timeout(CHECK_MS_MAX),
      });
      const answer = (await response.json()) as { error?: { message?: string }; usage?: { cost?: number } };
      if (!response.ok) return { provider, model, failure: `${response.status} ${answer.error?.message ?? ''}`.trim() };
      const ms = Math.round(performance.now() - from);
      const cost = answer.usage?.cost;
      return { provider, model, ms, ...(cost === undefined ? {} : { cost }) };
    } catch (error) {
      const late = error instanceof Error && error.name === 'TimeoutError';
      return { provider, model, failure: late ? `no answer within ${CHECK_MS_MAX / 1000} s` : String(error) };
    }
  };
}
