import { startGateway, type TestGateway, type TestGatewayOptions } from './harness.ts';

interface Answer<T> {
  status: number;
  body: T;
}

/** A gateway with workspaces that can log, and the operations that its tests need. */
export interface LoggingGateway extends TestGateway {
  managed<T = Record<string, never>>(method: string, path: string, body?: unknown): Promise<Answer<T>>;
  /** The id of the default workspace. */
  workspace_id: string;
  /** Changes settings of a workspace; by default of the default one. */
  set(settings: object, workspaceId?: string): Promise<void>;
  addKey(settings?: object): Promise<{ key: string; hash: string; id: number }>;
  content(id: string, credential?: string): Promise<Answer<{ data: Content }>>;
}

export interface Content {
  input: { prompt?: string; messages?: { role: string; content: unknown; [field: string]: unknown }[] };
  output: { completion: string | null; reasoning: string | null; [field: string]: unknown };
  error: null | { message: string; status: number; [field: string]: unknown };
  truncated: boolean;
}

export async function startLoggingGateway(options: TestGatewayOptions = {}): Promise<LoggingGateway> {
  const gateway = await startGateway(options);
  const callAs = async <T>(credential: string, method: string, path: string, body?: unknown): Promise<Answer<T>> => {
    const answer = await fetch(`${gateway.base_url}${path}`, {
      method,
      headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: (await answer.json()) as T };
  };
  const managed: LoggingGateway['managed'] = (method, path, body) => callAs(gateway.management_key, method, path, body);
  const { body } = await managed<{ data: { id: string }[] }>('GET', '/workspaces');
  const workspaceId = body.data[0]?.id ?? '';
  return {
    ...gateway,
    managed,
    workspace_id: workspaceId,
    async set(settings, id = workspaceId) {
      const { status, body } = await managed('PATCH', `/workspaces/${id}`, settings);
      if (status !== 200) throw new Error(`the workspace could not be changed: ${JSON.stringify(body)}`);
    },
    async addKey(settings = {}) {
      const made = await managed<{ key: string; data: { hash: string; id: number } }>('POST', '/keys', {
        name: 'one',
        ...settings,
      });
      if (made.status !== 201) throw new Error(`no key could be made: ${JSON.stringify(made.body)}`);
      return { key: made.body.key, ...made.body.data };
    },
    content: (id, credential = gateway.key) => callAs(credential, 'GET', `/generation/content?id=${id}`),
  };
}
