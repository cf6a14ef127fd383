import type { RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { afterEach, expect, test } from 'vitest';
import { createServer } from './create-server.ts';
import { METERED, type MeteredInference } from './metered.ts';
import type { Server } from './server.ts';

const metered: MeteredInference = { [METERED]: true };
const body = Type.Object({ model: Type.String() });
const ROUTE = {
  method: 'POST' as const,
  url: '/ask',
  config: { metered, direct: true },
  schema: { body },
  handler: () => Promise.resolve(),
};

let server: Server;
afterEach(() => server.close());

function register(change: Partial<RouteOptions>): void {
  server = createServer({ authenticate: () => Promise.reject(new Error()), logger: false, body_bytes_max: 1000 });
  server.route({ ...ROUTE, ...change } as RouteOptions as never);
}

test.each<[string, Partial<RouteOptions>, RegExp]>([
  [
    'without metering',
    { config: { access: 'any', direct: true } },
    /POST \/ask is direct: it must be a POST that is metered/,
  ],
  ['open to everybody', { config: { access: 'open', direct: true } }, /must be a POST that is metered/],
  ['of another method', { method: 'PUT' }, /must be a POST that is metered/],
  [
    'with a hook that only the framework runs',
    { onRequest: (_request, _reply, done) => done() },
    /cannot have onRequest/,
  ],
  [
    'with a hook before its validation',
    { preValidation: (_request, _reply, done) => done() },
    /cannot have preValidation/,
  ],
  ['with a hook before its handler', { preHandler: (_request, _reply, done) => done() }, /cannot have preHandler/],
  [
    'with two hooks of one kind',
    { onSend: [(_r, _s, payload, done) => done(null, payload), (_r, _s, payload, done) => done(null, payload)] },
    /one hook of a kind/,
  ],
  ['with a parameter in its path', { url: '/ask/:name' }, /must have a fixed path/],
  ['without a schema for its body', { schema: {} }, /a schema for its body/],
  ['with a schema for its query', { schema: { body, querystring: body } }, /and no other/],
])('an operation %s cannot be registered as a direct one', (_, change, message) => {
  expect(() => register(change)).toThrow(message);
});

test('an operation that fits is registered', () => {
  expect(() => register({})).not.toThrow();
});
