import { closeSync, openSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { limits } from '../limits.ts';
import type { ReloadCause } from './reload.ts';

/**
 * Calls `reload` when the file has changed, and at SIGHUP. The file is looked at rather than waited for: the system's own
 * notices miss what network and container file systems do, and renames and links put in another's place. What is looked at
 * is the file that the path leads to, so that both are seen. Gives what ends it.
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
 * Keeps SIGHUP from ending a gateway that has nothing to reload yet, as a supervisor may send it right after the start. What it
 * gives ends that, and tells whether a signal came.
 */
export function holdReloadSignal(): () => boolean {
  let has_come = false;
  const stopListening = onReloadSignal(() => {
    has_come = true;
  });
  return () => {
    stopListening();
    return has_come;
  };
}

/**
 * Runs `reload` at SIGHUP. A terminal that is closed sends the same signal, and then nobody is left to stop the gateway: it ends
 * the process, as it does where nothing listens for it. A gateway that writes to a terminal, be it its errors alone, runs in it.
 * Gives what ends that.
 */
export function onReloadSignal(reload: () => void): () => void {
  // On Windows it says that the console is being closed.
  if (process.platform === 'win32') return () => undefined;
  const take = () => {
    const is_of_terminal = process.stdout.isTTY || process.stderr.isTTY;
    if (!is_of_terminal || hasTerminal()) return reload();
    process.removeAllListeners('SIGHUP');
    process.kill(process.pid, 'SIGHUP');
  };
  process.on('SIGHUP', take);
  return () => process.off('SIGHUP', take);
}

/** Whether this process belongs to a terminal that is still there. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}

/** What tells one state of a file from another; undefined where there is none. */
async function stateOf(path: string): Promise<string | undefined> {
  try {
    const { dev, ino, size, mtimeNs } = await stat(path, { bigint: true });
    return `${dev}:${ino}:${size}:${mtimeNs}`;
  } catch {
    return undefined;
  }
}

/**
 * Calls `changed` once the file is in another state than before, and has been for two looks in a row: nobody is writing it
 * any more. Also for the state that it finds first, which may be newer than what was read before.
 */
function watch(path: string, changed: () => void): () => void {
  let known: string | undefined;
  let last: string | undefined;
  let is_looking = false;
  let is_stopped = false;
  const look = async () => {
    if (is_looking) return;
    is_looking = true;
    const state = await stateOf(path);
    is_looking = false;
    if (state !== known && state === last && !is_stopped) {
      known = state;
      changed();
    }
    last = state;
  };
  void look();
  const timer = setInterval(look, limits.config_watch_ms);
  timer.unref();
  return () => {
    is_stopped = true;
    clearInterval(timer);
  };
}
