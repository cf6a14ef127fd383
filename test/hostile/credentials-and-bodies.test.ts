/**
 * Unusual forms of keys and bodies, and which of them are refused: headers of other services, compressed bodies and
 * bodies without a type.
 */
import { request as send } from 'node:http';
import { deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';

const BODY_BYTES_MAX = 1_000_000;
const ask = { model: 'sandbox/echo', messages: [{ role: 'user', content: 'Good morning' }] };

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ environment: { GATEWAY_BODY_BYTES_MAX: String(BODY_BYTES_MAX) } });
});
afterAll(async () => {
  await gateway.stop();
});

interface Answer {
  status: number;
  text: string;
  headers: Record<string, string | string[] | undefined>;
}

/** A request with only these headers; `pieces` are sent one by one. */
function raw(
  path: string,
  headers: Record<string, string>,
  pieces: readonly (Buffer | string)[] = [],
  method = 'POST',
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = send(`${gateway.base_url}${path}`, { method, headers }, (response) => {
      let text = '';
      response.on('data', (piece: Buffer) => {
        text += piece.toString();
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text, headers: response.headers }));
    });
    request.on('error', reject);
    for (const piece of pieces) request.write(piece);
    request.end();
  });
}
const json = { 'content-type': 'application/json' };
const bearer = () => ({ authorization: `Bearer ${gateway.key}` });
const chat = (headers: Record<string, string>, ...pieces: (Buffer | string)[]) =>
  raw('/chat/completions', headers, pieces);

describe('a key', () => {
  test('may be a bearer token, or in x-api-key or api-key', async () => {
    const forms: Record<string, string>[] = [bearer(), { 'x-api-key': gateway.key }, { 'api-key': gateway.key }];
    for (const headers of forms) {
      expect((await chat({ ...json, ...headers }, JSON.stringify(ask))).status).toBe(200);
    }
  });

  test('may be sent twice, but two different ones are a 400, even if one is valid', async () => {
    const same = { ...json, ...bearer(), 'api-key': gateway.key, 'x-api-key': gateway.key };
    expect((await chat(same, JSON.stringify(ask))).status).toBe(200);
    for (const other of ['api-key', 'x-api-key']) {
      const refused = await chat({ ...json, ...bearer(), [other]: 'sk-another' }, JSON.stringify(ask));
      expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('two different keys')]);
      expect(refused.text).not.toContain('sk-another');
    }
    const both = await chat({ ...json, 'api-key': gateway.key, 'x-api-key': 'sk-another' }, JSON.stringify(ask));
    expect(both.status).toBe(400);
  });

  test('in api-key appears in no log, and in Vary of answers that depend on it', async () => {
    await chat({ ...json, 'api-key': 'sk-wrong-0123456789' }, JSON.stringify(ask));
    await chat({ ...json, 'api-key': gateway.key }, JSON.stringify(ask));
    const log = gateway.log_lines.join('');
    expect(log).not.toContain('sk-wrong-0123456789');
    expect(log).not.toContain(gateway.key);
    const endpoints = await raw('/models/sandbox/echo/endpoints', { 'api-key': gateway.key }, [], 'GET');
    expect(endpoints.headers['vary']).toContain('api-key');
  });
});

describe('a body without a content type', () => {
  test('is JSON with a valid key', async () => {
    expect((await chat(bearer(), JSON.stringify(ask))).status).toBe(200);
    const made = await raw('/keys', { authorization: `Bearer ${gateway.management_key}` }, ['{"name":"plain"}']);
    expect(made.status).toBe(201);
  });

  test('is refused without a key, and in forms of pages', async () => {
    expect((await chat({}, JSON.stringify(ask))).status).toBe(401);
    const page = await fetch(`${gateway.url}/sign-in`, {
      method: 'POST',
      body: new TextEncoder().encode('{"key":"x"}'),
    });
    expect(page.status).toBeGreaterThanOrEqual(400);
  });

  test('that is not JSON is a 400 that names the reason', async () => {
    expect(await chat(bearer(), 'model=sandbox')).toMatchObject({ status: 400 });
  });
});

describe('a body in gzip', () => {
  const packed = { ...json, 'content-encoding': 'gzip' };

  test('is unpacked, in one piece or several, with a length or without', async () => {
    const bytes = gzipSync(JSON.stringify(ask));
    for (const headers of [{ 'content-length': String(bytes.length) }, {}] as Record<string, string>[]) {
      const { status, text } = await chat(
        { ...packed, ...bearer(), ...headers },
        bytes.subarray(0, 20),
        bytes.subarray(20),
      );
      expect([status, text]).toEqual([200, expect.stringContaining('Good morning')]);
    }
  });

  test('is not unpacked without a key, or with a wrong one', async () => {
    const bomb = gzipSync(Buffer.alloc(50 * BODY_BYTES_MAX));
    expect((await chat(packed, bomb)).status).toBe(401);
    expect((await chat({ ...packed, authorization: 'Bearer sk-wrong' }, bomb)).status).toBe(401);
  });

  test('may be as large as a plain body, and no larger', async () => {
    const fill = (bytes: number) => {
      const empty = JSON.stringify({ ...ask, x: '' }).length;
      return gzipSync(JSON.stringify({ ...ask, x: 'a'.repeat(bytes - empty) }));
    };
    expect((await chat({ ...packed, ...bearer() }, fill(BODY_BYTES_MAX))).status).toBe(200);
    expect((await chat({ ...packed, ...bearer() }, fill(BODY_BYTES_MAX + 1))).status).toBe(413);
  });

  test('that unpacks to far more does not reserve memory for it', async () => {
    const bomb = gzipSync(Buffer.alloc(200 * BODY_BYTES_MAX, ' '));
    const before = process.memoryUsage().rss;
    const answers = await Promise.all(Array.from({ length: 8 }, () => chat({ ...packed, ...bearer() }, bomb)));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 413));
    // Eight of them would take 1.6 GB.
    expect(process.memoryUsage().rss - before).toBeLessThan(400_000_000);
  });

  test('may be compressed once: a second layer is not JSON, and a list of encodings is refused', async () => {
    const twice = gzipSync(gzipSync(JSON.stringify(ask)));
    expect((await chat({ ...packed, ...bearer() }, twice)).status).toBe(400);
    for (const coding of ['gzip, gzip', 'br', 'deflate', 'x-gzip', 'identity, gzip']) {
      const body = coding === 'deflate' ? deflateSync(JSON.stringify(ask)) : gzipSync(JSON.stringify(ask));
      const refused = await chat({ ...packed, ...bearer(), 'content-encoding': coding }, body);
      expect([refused.status, refused.text], coding).toEqual([400, expect.stringContaining('content-encoding')]);
    }
  });

  test.each([
    ['is not gzip', Buffer.from(JSON.stringify(ask))],
    ['breaks off', gzipSync(JSON.stringify(ask)).subarray(0, -12)],
    ['is empty', gzipSync('')],
    ['contains no JSON', gzipSync('Good morning')],
  ])('that %s is a 400', async (_, bytes) => {
    expect((await chat({ ...packed, ...bearer() }, bytes)).status).toBe(400);
    expect((await chat({ ...packed, ...bearer() }, gzipSync(JSON.stringify(ask)))).status).toBe(200);
  });

  test('must contain JSON', async () => {
    const headers = { ...bearer(), 'content-type': 'multipart/form-data; boundary=x', 'content-encoding': 'gzip' };
    expect((await raw('/audio/transcriptions', headers, [gzipSync('--x--')])).status).toBe(400);
  });
});

test('the slash of a model id may be escaped in every path', async () => {
  for (const [path, key] of [
    ['/models/sandbox%2Fecho', gateway.key],
    ['/models/sandbox%2Fecho/endpoints', gateway.key],
    ['/model/sandbox%2Fecho', gateway.key],
  ] as const) {
    const escaped = await raw(path, { authorization: `Bearer ${key}` }, [], 'GET');
    const plain = await raw(path.replace('%2F', '/'), { authorization: `Bearer ${key}` }, [], 'GET');
    expect([escaped.status, escaped.text], path).toEqual([200, plain.text]);
  }
});
