import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type Disk, nodeDisk } from '../src/ledger/journal/disk.ts';

function bytesIn(dir: string): number {
  const entries = readdirSync(dir, { withFileTypes: true, recursive: true });
  return entries.reduce((sum, one) => sum + (one.isFile() ? statSync(join(one.parentPath, one.name)).size : 0), 0);
}

/** The machine's disk, as if `dir` were alone on a disk of `total_bytes`, of which other data may use a part. */
export function boundedDisk(dir: string, totalBytes: number): Disk & { taken_bytes: number } {
  const free = () => Math.max(0, totalBytes - disk.taken_bytes - bytesIn(dir));
  const disk = {
    ...nodeDisk,
    taken_bytes: 0,
    space: () => ({ free_bytes: free(), total_bytes: totalBytes }),
    write: (file: number, bytes: Buffer, from: number) => {
      const taken = Math.min(bytes.length - from, free());
      if (taken <= 0) throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
      return nodeDisk.write(file, bytes.subarray(0, from + taken), from);
    },
  };
  return disk;
}

/** Why no volume of its own can be mounted here; undefined if it can. */
export const unmountable: string | undefined = (() => {
  if (process.platform !== 'linux') return 'only Linux has tmpfs';
  if (process.getuid?.() !== 0) return 'only root may mount a volume';
  const dir = mkdtempSync(join(tmpdir(), 'gateway-mount-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', dir], { stdio: 'pipe' });
    execFileSync('umount', [dir]);
    return undefined;
  } catch (error) {
    return `mounting is refused: ${String((error as { stderr?: Buffer }).stderr ?? error).trim()}`;
  } finally {
    rmSync(dir, { recursive: true });
  }
})();

/** A real volume of this size, removed after the test. */
export function mountVolume(bytes: number): string {
  const dir = mkdtempSync(join(tmpdir(), 'gateway-volume-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', dir]);
  onTestFinished(() => {
    execFileSync('umount', ['-l', dir]);
    rmSync(dir, { recursive: true, force: true });
  });
  return dir;
}
