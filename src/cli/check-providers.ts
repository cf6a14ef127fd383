import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Catalog } from '../catalog/catalog.ts';
import type { Config } from '../config.ts';
import { createLog } from '../telemetry/log.ts';
import { cheapModel } from './example-model.ts';
import { catalogOf, startGateway } from './start-gateway.ts';

/** How one provider took one short request. */
export interface CheckedProvider {
  provider: string;
  /** Which model was called. */
  model?: string;
  ms?: number;
  /** USD. */
  cost?: number;
  /** Why it did not answer; undefined: it did. */
  failure?: string;
  /** Why it was not called; undefined: it was. */
  skipped?: string;
}

const CHECK_MS_MAX = 60_000;
/** Some providers accept no smaller bound. */
const OUTPUT_TOKENS = 16;

/**
 * Sends each provider one short request, all at once, through a gateway of the same configuration with a store of its own: what is
 * checked is the way that requests take, and no record of the real gateway changes.
 */
export async function checkProviders(config: Config): Promise<CheckedProvider[]> {
  const data_dir = mkdtempSync(join(tmpdir(), 'gateway-check-'));
  let api_key: string | undefined;
  try {
    const gateway = await startGateway({
      config: alone(config, data_dir),
      log: createLog('silent'),
      onFirstKeys(keys) {
        api_key = keys.api_key;
      },
    });
    try {
      const catalog = catalogOf(config).at(Date.now());
      const ask = askThrough(`${gateway.url}/api/v1`, api_key ?? '');
      return await Promise.all(config.providers.map(({ slug }) => check(slug, catalog, ask)));
    } finally {
      await gateway.stop();
    }
  } finally {
    rmSync(data_dir, { recursive: true, force: true });
  }
}

/** The configuration of a gateway that serves this command alone, and nobody else. */
function alone(config: Config, data_dir: string): Config {
  return {
    ...config,
    data_dir,
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

async function check(provider: string, catalog: Catalog, ask: Ask): Promise<CheckedProvider> {
  for (const kind of ['text', 'embeddings'] as const) {
    const model = cheapModel(catalog, kind, provider);
    if (model !== undefined) return ask(provider, model.id, kind);
  }
  return { provider, skipped: 'the catalog has no chat or embedding model of this provider with a known price' };
}

type Ask = (provider: string, model: string, kind: 'text' | 'embeddings') => Promise<CheckedProvider>;

function askThrough(base_url: string, api_key: string): Ask {
  return async (provider, model, kind) => {
    const from = performance.now();
    const only = { model, provider: { only: [provider], allow_fallbacks: false } };
    const text = 'Answer with OK.';
    const body =
      kind === 'text'
        ? { ...only, messages: [{ role: 'user', content: text }], max_tokens: OUTPUT_TOKENS }
        : { ...only, input: text };
    try {
      const response = await fetch(`${base_url}/${kind === 'text' ? 'chat/completions' : 'embeddings'}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${api_key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
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
