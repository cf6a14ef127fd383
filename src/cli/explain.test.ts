import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runProgram } from '../../test/command-line.ts';
import { startGateway, type TestGateway } from '../../test/harness.ts';

let gateway: TestGateway;
let folder: string;
beforeAll(async () => {
  gateway = await startGateway();
  folder = mkdtempSync(join(tmpdir(), 'gateway-explain-'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await gateway.stop();
});

const explain = (...args: string[]) =>
  runProgram(['explain', ...args, '--url', gateway.url], { env: { GATEWAY_KEY: gateway.key } });

test('explain prints the models and endpoints of a request, their order, and expected and maximum costs', async () => {
  const { code, stdout } = await explain('sandbox/fallback');
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^sandbox\/fallback: sandbox\/fallback \(\w+, .*\)\n\nTried in this order:\n {2}1\. \S+ {2}sandbox\/fallback /,
  );
  expect(stdout).toMatch(/^ {2}2\. .*expected cost \$\S+, at most \$\S+$/m);
  const json = await explain('sandbox/echo', '--prompt', 'Hi', '--json');
  expect(JSON.parse(json.stdout)).toMatchObject({ requested: 'sandbox/echo', error: null });
});

test('explain prints a request that would be refused too, and ends with exit code 1', async () => {
  const file = join(folder, 'body.json');
  writeFileSync(file, JSON.stringify({ model: 'sandbox/echo', messages: [], provider: { only: ['nobody'] } }));
  const { code, stdout, stderr } = await explain('--body', file);
  expect(code).toBe(1);
  expect(stdout + stderr).toMatch(/would be refused with 4\d\d: |refuses to explain \(400\): /);
});

test('explain names a missing key, model or file with advice', async () => {
  const without = await runProgram(['explain', 'sandbox/echo'], { env: { GATEWAY_KEY: '' } });
  expect(without).toMatchObject({ code: 1, stderr: expect.stringMatching(/^GATEWAY_KEY is not set.*keys create/) });
  const nobody = await runProgram(['explain', 'a/b', '--url', 'http://127.0.0.1:29'], { env: { GATEWAY_KEY: 'k' } });
  const sentence = /^No gateway answers at http:\/\/127\.0\.0\.1:29 \(ECONNREFUSED\)\. Start it/;
  expect(nobody).toMatchObject({ code: 1, stderr: expect.stringMatching(sentence) });
  expect(await explain('--body', join(folder, 'none.json'))).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/none\.json cannot be read \(ENOENT\)/),
  });
});
