import { base, signIn } from './address.ts';
import { type Operations, routes } from './api.gen.ts';

let formToken = '';

/** Sets the headers for requests of this session that change something. */
export function holdToken(token: string): void {
  formToken = token;
}

/** A refusal by the API; the message is a sentence for the person. */
class ApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

type Input<Name extends keyof Operations> = {
  path?: Operations[Name]['path'];
  query?: Operations[Name]['query'];
  body?: Operations[Name]['body'];
};

/** Calls an operation of the API with the session of the page. Throws an `ApiError` with the API's message. */
export async function call<Name extends keyof Operations>(
  name: Name,
  { path = {}, query = {}, body }: Input<Name>,
  signal?: AbortSignal,
): Promise<Operations[Name]['answer']> {
  const [method, pattern] = routes[name];
  const filled = pattern.replace(/\{(\w+)\}/g, (_, part: string) =>
    encodeURIComponent(String((path as Record<string, unknown>)[part] ?? '')),
  );
  const search = new URLSearchParams();
  for (const [field, value] of Object.entries(query)) if (value !== undefined) search.set(field, String(value));
  const response = await fetch(`${base}${filled}${search.size === 0 ? '' : `?${search}`}`, {
    method,
    ...(signal === undefined ? {} : { signal }),
    headers: {
      ...(method === 'GET' ? {} : { 'x-form-token': formToken }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer = (await response.json().catch(() => {
    // The body of a request that the page aborted is not an empty answer.
    signal?.throwIfAborted();
    return {};
  })) as { error?: { message?: string } };
  if (response.ok) return answer as Operations[Name]['answer'];
  if (response.status === 401) signIn();
  throw new ApiError(response.status, answer.error?.message ?? `The gateway answered with status ${response.status}.`);
}
