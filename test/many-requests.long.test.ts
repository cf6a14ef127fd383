/** The memory that requests leave in use in a gateway. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { startSandbox } from '../sandbox/server.ts';

test('ten thousand consecutive requests leave no memory in use', { timeout: 600_000 }, async () => {
  const probe = new URL('./memory-probe.ts', import.meta.url).pathname;
  const sandbox = await startSandbox();
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', probe, sandbox.url, '10000']);
  await sandbox.stop();
  const result = JSON.parse(stdout) as { failed: number; heap_bytes: number[]; rss_bytes: number[] };
  expect(result.failed).toBe(0);
  // Least squares over the second half, when caches are warm: bytes that each further request leaves on the heap.
  const half = result.heap_bytes.slice(result.heap_bytes.length / 2);
  const meanX = (half.length - 1) / 2;
  const meanY = half.reduce((sum, bytes) => sum + bytes, 0) / half.length;
  const slope =
    half.reduce((sum, bytes, at) => sum + (at - meanX) * (bytes - meanY), 0) /
    half.reduce((sum, _, at) => sum + (at - meanX) ** 2, 0);
  const bytesARequest = slope / 1_000;
  expect(bytesARequest, JSON.stringify(result)).toBeLessThan(300);
});
