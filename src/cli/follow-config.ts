import { closeSync, openSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { limits } from '../limits.ts';
import type { ReloadCause } from './reload.ts';

/**
 * Calls `reload` when the file has changed, and at SIGHUP. Returns a function that ends it. The file is polled: notifications of
 * the system miss changes on network and container file systems, and files that are replaced by a rename or a link. The path is
 * resolved each time, so that both are seen.
 */
export function followConfig(
  { path, is_watched }: { path: string; is_watched: boolean },
  reload: (cause: ReloadCause) => void,
): () => void {
  const stopListening = onReloadSignal(() => reload('signal'));
  const stopWatching = is_watched ? watch(path, () => reload('file')) : () => undefined;
  return () => {
    stopListening();
    stopWatching();
  };
}

/**
 * Catches SIGHUP while there is nothing to reload yet: a supervisor may send it right after the start, which would end the
 * process. Returns a function that stops catching and says whether a signal arrived.
 */
export function holdReloadSignal(): () => boolean {
  let hasArrived = false;
  const stopListening = onReloadSignal(() => {
    hasArrived = true;
  });
  return () => {
    stopListening();
    return hasArrived;
  };
}

/**
 * Runs `reload` at SIGHUP. Returns a function that ends it. A terminal that is closed sends the same signal: then the process
 * ends, as it would without a listener, since nobody is left to stop the gateway. A gateway belongs to a terminal if its
 * standard output or standard error is one.
 */
export function onReloadSignal(reload: () => void): () => void {
  // On Windows the signal means that the console is being closed.
  if (process.platform === 'win32') return () => undefined;
  const handle = () => {
    const isOfTerminal = process.stdout.isTTY || process.stderr.isTTY;
    if (!isOfTerminal || hasTerminal()) return reload();
    process.removeAllListeners('SIGHUP');
    process.kill(process.pid, 'SIGHUP');
  };
  process.on('SIGHUP', handle);
  return () => process.off('SIGHUP', handle);
}

/** Whether this process has a terminal that is still open. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}

/** Identifies the state of a file; undefined if there is none. */
async function stateOf(path: string): Promise<string | undefined> {
  try {
    const { dev, ino, size, mtimeNs } = await stat(path, { bigint: true });
    return `${dev}:${ino}:${size}:${mtimeNs}`;
  } catch {
    return undefined;
  }
}

/**
 * Calls `changed` when the file has another state than before and kept it for two polls, so that a write in progress is not read.
 * Also called for the first state, which may be newer than what was loaded.
 */
function watch(path: string, changed: () => void): () => void {
  let known: string | undefined;
  let last: string | undefined;
  let isPolling = false;
  let isStopped = false;
  const poll = async () => {
    if (isPolling) return;
    isPolling = true;
    const state = await stateOf(path);
    isPolling = false;
    if (state !== known && state === last && !isStopped) {
      known = state;
      changed();
    }
    last = state;
  };
  void poll();
  const timer = setInterval(poll, limits.config_watch_ms);
  timer.unref();
  return () => {
    isStopped = true;
    clearInterval(timer);
  };
}
