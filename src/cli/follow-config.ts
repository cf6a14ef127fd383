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
  const onSignal = () => reload('signal');
  // On Windows it says that the console is being closed.
  if (process.platform !== 'win32') process.on('SIGHUP', onSignal);
  const stopWatching = is_watched ? watch(path, () => reload('file')) : () => undefined;
  return () => {
    process.off('SIGHUP', onSignal);
    stopWatching();
  };
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
