import { isDeepStrictEqual } from 'node:util';
import type { Provider } from '../providers/provider.ts';
import { providerRow } from '../providers/table.ts';
import { createServices, type Services } from '../providers/transport/services.ts';
import type { Logger } from '../telemetry/log.ts';

/** The interval between two listings of a local server, its timeout, and the bytes and models that are read of an answer. */
const LOCAL_MODELS_EVERY_MS = 60_000;
const LOCAL_MODELS_MS_MAX = 2_000;
const LOCAL_MODELS_BYTES_MAX = 1024 * 1024;
const LOCAL_MODELS_MAX = 500;
const LOCAL_MODEL_NAME_CHARS_MAX = 200;

export interface LocalModelsOptions {
  /** The active providers; called each time. */
  providers(): readonly Provider[];
  log: Logger;
  /** Called with the ids, `<provider>/<model>`, when they have changed. */
  onChange(ids: readonly string[]): void;
}

/** The ids in a list of models in the format of OpenAI's API; undefined if it is not such a list. */
function idsOf(body: Buffer): string[] | undefined {
  let list: unknown;
  try {
    list = JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
  const { data } = (list ?? {}) as { data?: unknown };
  if (!Array.isArray(data)) return undefined;
  const ids = data.slice(0, LOCAL_MODELS_MAX).flatMap((model: { id?: unknown } | null) => model?.id ?? []);
  const isName = (id: unknown): id is string =>
    typeof id === 'string' && /^[\x21-\x7e]+$/.test(id) && id.length <= LOCAL_MODEL_NAME_CHARS_MAX;
  return [...new Set(ids.filter(isName))].sort();
}

async function listOf({ base_url, credential, headers }: Provider, services: Services): Promise<string[] | undefined> {
  const authorization: Record<string, string> =
    credential === undefined ? {} : { authorization: `Bearer ${credential}` };
  try {
    const { status, body } = await services.ask({
      url: `${base_url}/models`,
      method: 'GET',
      headers: { accept: 'application/json', ...authorization, ...headers },
      bytes_max: LOCAL_MODELS_BYTES_MAX,
      timeout_ms: LOCAL_MODELS_MS_MAX,
    });
    return status === 200 ? idsOf(body) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Lists the models of servers on the operator's own machines (Ollama, vLLM and the like), at once and then every minute. A
 * server that does not answer has none until it answers again; requests for its models are still sent to it.
 */
export function followLocalModels({ providers, log, onChange }: LocalModelsOptions): { stop(): Promise<void> } {
  const services = createServices();
  const silent = new Set<string>();
  let known: readonly string[] = [];
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;

  async function modelsOf(provider: Provider): Promise<string[]> {
    const { slug } = provider;
    const ids = await listOf(provider, services);
    if (ids !== undefined) {
      silent.delete(slug);
      return ids.map((id) => `${slug}/${id}`);
    }
    if (!isStopped && !silent.has(slug)) {
      silent.add(slug);
      log.warn({ provider: slug }, 'a local server does not list its models; GET /models shows none of them');
    }
    return [];
  }

  async function update(): Promise<void> {
    const local = providers().filter(({ slug }) => providerRow.get(slug)?.any_model === true);
    const ids = (await Promise.all(local.map(modelsOf))).flat();
    if (isStopped) return;
    if (!isDeepStrictEqual(ids, known)) {
      known = ids;
      onChange(ids);
    }
    timer = setTimeout(() => void update(), LOCAL_MODELS_EVERY_MS);
    timer.unref();
  }
  void update();

  return {
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await services.close();
    },
  };
}
