import type { Server } from '../../src/http/server.ts';

/** An answer as a browser shows it. */
export interface Shown {
  status: number;
  body: string;
  headers: Record<string, unknown>;
  /** The target of the redirect. Undefined if there is none. */
  location: string | undefined;
  /** The hidden fields of the page's forms. */
  hidden: Record<string, string>;
}

/** A client that requests pages, keeps cookies, and sends the origin of each form, as browsers do. */
export function pageBrowser(server: Server, origin = 'http://gateway.example') {
  const cookies = new Map<string, string>();
  const ask = async (
    method: 'GET' | 'POST' | 'OPTIONS',
    url: string,
    form?: Record<string, string> | string,
    headers: Record<string, string> = {},
  ): Promise<Shown> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const answer = await server.inject({
      method,
      url,
      headers: {
        host: new URL(origin).host,
        ...(cookie === '' ? {} : { cookie }),
        ...(form === undefined ? {} : { origin, 'content-type': 'application/x-www-form-urlencoded' }),
        ...headers,
      },
      ...(form === undefined ? {} : { payload: typeof form === 'string' ? form : `${new URLSearchParams(form)}` }),
    });
    for (const line of [answer.headers['set-cookie'] ?? []].flat()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (/Max-Age=0\b/.test(line)) cookies.delete(name);
      else cookies.set(name, value);
    }
    const hidden = [...answer.body.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)];
    return {
      status: answer.statusCode,
      body: answer.body,
      headers: answer.headers,
      location: resolved(answer.headers.location, url),
      hidden: Object.fromEntries(hidden.map(([, name = '', value = '']) => [unescaped(name), unescaped(value)])),
    };
  };
  /** Calls an operation as a script of a page does: with the cookie, and with the token if one is passed. */
  const api = async (
    method: string,
    path: string,
    options: { body?: object; token?: string; headers?: object } = {},
  ) => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const { body, token, headers = {} } = options;
    const answer = await server.inject({
      method: method as 'GET',
      url: path,
      headers: {
        host: new URL(origin).host,
        ...(cookie === '' ? {} : { cookie }),
        ...(method === 'GET' ? {} : { origin }),
        ...(token === undefined ? {} : { 'x-form-token': token }),
        ...headers,
      },
      ...(body === undefined ? {} : { payload: body }),
    });
    return { status: answer.statusCode, body: answer.json() as Record<string, never>, headers: answer.headers };
  };
  return {
    api,
    cookies,
    get: (url: string, headers?: Record<string, string>) => ask('GET', url, undefined, headers),
    post: (url: string, form: Record<string, string> | string, headers?: Record<string, string>) =>
      ask('POST', url, form, headers),
  };
}

/** A redirect to this gateway as a path, as a browser would follow it. */
function resolved(location: string | undefined, url: string): string | undefined {
  if (location === undefined || !location.startsWith('.')) return location;
  const target = new URL(location, new URL(url, 'http://gateway.invalid'));
  return `${target.pathname}${target.search}`;
}

function unescaped(text: string): string {
  const named: Record<string, string> = { lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' };
  return text.replace(/&(lt|gt|quot|#39|amp);/g, (_, name: string) => named[name] ?? '');
}
