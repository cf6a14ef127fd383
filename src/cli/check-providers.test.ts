import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { startSandbox } from '../../sandbox/server.ts';
import { doctorCommand } from './doctor.ts';

test('doctor --check calls each provider once, reports the result, and exits with 1 if one does not answer', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-doctor-check-'));
  const sandbox = await startSandbox({ api_key: 'right-key-of-the-sandbox' });
  const provider = (key: string) => `{ dialect: openai-chat, base_url: "${sandbox.url}/v1", api_key: ${key} }`;
  const model = (slug: string) =>
    `{ endpoints: [{ provider: ${slug}, upstream_model: echo, pricing: { prompt: 1, completion: 2 } }] }`;
  const yaml = `
bundled_catalog: false
providers:
  right: ${provider('right-key-of-the-sandbox')}
  wrong: ${provider('another-key-that-nobody-knows')}
  away: { dialect: openai-chat, base_url: "http://127.0.0.1:9/v1", api_key: k }
  empty: { dialect: openai-chat, base_url: "${sandbox.url}/v1", api_key: k }
  hears: ${provider('right-key-of-the-sandbox')}
models:
  a/right: ${model('right')}
  a/wrong: ${model('wrong')}
  a/away: ${model('away')}
  a/hears:
    input_modalities: [audio]
    output_modalities: [transcription]
    endpoints: [{ provider: hears, upstream_model: echo, pricing: { audio_second: 0.0001 } }]
`;
  const config = join(folder, 'gateway.yaml');
  writeFileSync(config, yaml);
  const dataDir = join(folder, 'data');
  const environment = { GATEWAY_DATA_DIR: dataDir };
  // As in a container with a read-only root.
  mkdirSync(dataDir);
  vi.stubEnv('TMPDIR', join(folder, 'missing'));
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  try {
    expect(await doctorCommand.run(['--check', '--json', '--config', config], environment)).toBe(1);
    const { checked, faults } = JSON.parse(write.mock.calls.join('')) as {
      checked: Record<string, unknown>[];
      faults: string[];
    };
    expect(checked).toMatchObject([
      { provider: 'right', model: 'a/right', ms: expect.any(Number), cost: expect.any(Number) },
      {
        provider: 'wrong',
        model: 'a/wrong',
        failure: expect.stringMatching(/^502 .*refused the gateway's credential/),
      },
      { provider: 'away', failure: expect.stringMatching(/^502 away did not answer: .*could not be reached/) },
      { provider: 'empty', skipped: expect.any(String) },
      { provider: 'hears', model: 'a/hears', cost: 0.0001 },
    ]);
    expect(readdirSync(dataDir)).toEqual([]);
    expect(faults).toEqual([
      expect.stringMatching(/^Provider "wrong" does not answer: 502/),
      expect.stringMatching(/^Provider "away" does not answer: 502/),
    ]);
  } finally {
    write.mockRestore();
    vi.unstubAllEnvs();
    await sandbox.stop();
    rmSync(folder, { recursive: true });
  }
});
