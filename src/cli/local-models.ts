import { isDeepStrictEqual } from 'node:util';
import { limits } from '../limits.ts';
import type { Provider } from '../providers/provider.ts';
import { providerRow } from '../providers/table.ts';
import { createServices, type Services } from '../providers/transport/services.ts';
import type { Logger } from '../telemetry/log.ts';

export interface LocalModelsOptions {
  /** The providers that are on. Asked each time. */
  providers(): readonly Provider[];
  log: Logger;
  /** Told of the ids, `<provider>/<model>`, when they are others than before. */
  onChange(ids: readonly string[]): void;
}

/** The ids of a list of models as OpenAI's API has it; undefined: it is none. */
function idsOf(body: Buffer): string[] | undefined {
  let list: unknown;
  try {
    list = JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
  const { data } = (list ?? {}) as { data?: unknown };
  if (!Array.isArray(data)) return undefined;
  const ids = data.slice(0, limits.local_models_max).flatMap((one: { id?: unknown } | null) => one?.id ?? []);
  const is_name = (id: unknown): id is string =>
    typeof id === 'string' && /^[\x21-\x7e]+$/.test(id) && id.length <= limits.local_model_name_chars_max;
  return [...new Set(ids.filter(is_name))].sort();
}

async function listOf({ base_url, credential, headers }: Provider, services: Services): Promise<string[] | undefined> {
  const authorization: Record<string, string> =
    credential === undefined ? {} : { authorization: `Bearer ${credential}` };
  try {
    const { status, body } = await services.ask({
      url: `${base_url}/models`,
      method: 'GET',
      headers: { accept: 'application/json', ...authorization, ...headers },
      bytes_max: limits.local_models_bytes_max,
      timeout_ms: limits.local_models_ms_max,
    });
    return status === 200 ? idsOf(body) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Follows which models the servers on the operator's own machines have (Ollama, vLLM and their like): they are asked at once, and
 * every minute after that. What cannot be asked has none until it answers again; requests to its models go to it all the same.
 */
export function followLocalModels({ providers, log, onChange }: LocalModelsOptions): { stop(): Promise<void> } {
  const services = createServices();
  const unheard = new Set<string>();
  let known: readonly string[] = [];
  let timer: NodeJS.Timeout | undefined;
  let has_stopped = false;

  async function modelsOf(provider: Provider): Promise<string[]> {
    const { slug } = provider;
    const ids = await listOf(provider, services);
    if (ids !== undefined) {
      unheard.delete(slug);
      return ids.map((id) => `${slug}/${id}`);
    }
    if (!has_stopped && !unheard.has(slug)) {
      unheard.add(slug);
      log.warn({ provider: slug }, 'a local server does not list its models; GET /models shows none of them');
    }
    return [];
  }

  async function look(): Promise<void> {
    const local = providers().filter(({ slug }) => providerRow.get(slug)?.any_model === true);
    const found = (await Promise.all(local.map(modelsOf))).flat();
    if (has_stopped) return;
    if (!isDeepStrictEqual(found, known)) {
      known = found;
      onChange(found);
    }
    timer = setTimeout(() => void look(), limits.local_models_every_ms);
    timer.unref();
  }
  void look();

  return {
    async stop() {
      has_stopped = true;
      clearTimeout(timer);
      await services.close();
    },
  };
}
