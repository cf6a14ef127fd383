import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { freePort, freshDir, MANAGEMENT_KEY, run, until } from './gateway-process.ts';

/** Writes at the end of a process which of Node's modules, and which files, its main thread loaded. */
const WITNESS = `
const { isMainThread } = require('node:worker_threads');
if (isMainThread) {
  const files = [];
  require('node:module').registerHooks({ load: (url, context, next) => { files.push(url); return next(url, context); } });
  process.on('exit', () => require('node:fs').writeFileSync(process.env.REPORT_FILE, JSON.stringify([...process.moduleLoadList, ...files])));
}`;

/** Modules that take megabytes and that most gateways never use, each with what its absence shows. */
const NOT_NEEDED: Readonly<Record<string, RegExp>> = {
  "Node's fetch and web sockets: `node:http` was imported, not required": /internal\/deps\/undici\/undici$/,
  'the whole of undici': /\/undici\/lib\/web\//,
  "Ajv as Fastify's validator": /\/@fastify\/ajv-compiler\//,
  'what writes answers by their schema, and Ajv with it': /\/(fast-json-stringify\/index|ajv\/dist\/ajv)\.js$/,
  'what makes and renders the OpenAPI document': /\/@fastify\/(swagger|static)|\/http\/documentation\.ts/,
  YAML: /\/node_modules\/yaml\//,
  "the engine of users' patterns": /\/node_modules\/re2js\//,
  'the half of TypeBox that converts values': /\/typebox\/build\/(value|compile)\//,
  PostgreSQL: /\/node_modules\/pg\//,
  'OpenID Connect': /\/node_modules\/openid-client\//,
};

test('a plain start loads no large module that it does not need', async () => {
  const home = freshDir();
  const witness = join(home, 'witness.cjs');
  const reportFile = join(home, 'told.json');
  writeFileSync(witness, WITNESS);
  const port = await freePort();
  const gateway = run(
    process.execPath,
    ['--require', witness, join(import.meta.dirname, '../../bin/model-gateway.cjs')],
    {
      cwd: home,
      env: {
        GATEWAY_PORT: String(port),
        GATEWAY_DATA_DIR: join(home, 'data'),
        GATEWAY_MANAGEMENT_KEY: MANAGEMENT_KEY,
        REPORT_FILE: reportFile,
      },
    },
  );
  await until('ready', async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/health/ready`).catch(() => undefined);
    return answer?.status === 200;
  });
  gateway.child.kill('SIGTERM');
  expect(await gateway.ended).toBe(0);
  const loaded = JSON.parse(readFileSync(reportFile, 'utf8')) as string[];
  expect(loaded.filter((name) => name.endsWith('/src/cli/start-gateway.ts'))).toHaveLength(1);
  const needless = Object.entries(NOT_NEEDED).filter(([, name]) => loaded.some((file) => name.test(file)));
  expect(needless.map(([what]) => what)).toEqual([]);
});
