import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Announcement, type ChangeFeed, urgent } from './change-feed.ts';

/** The interval at which serving processes on an embedded store check for changes of others. A change waits longer than that. */
const FEED_LOOK_MS = 20;
export const FEED_SETTLE_MS = 30;

/** A file beside the embedded store; its content changes with every change. */
const CHANGES_FILE = 'changes';

/** A valid mark. An incomplete one, while another process writes it, does not match: two of these could be equal. */
const MARK = /^[\da-f-]{36}$/;

/**
 * The feed of the processes that share an embedded store: workers, a second gateway, the commands. All are on one machine,
 * with one clock and one view of its files, so a mark in a file suffices: no process needs to know or reach the others.
 *
 * - `current` reads the mark, unless it did so less than `FEED_LOOK_MS` ago; another mark means `everything`.
 * - A change writes a mark in its transaction and once more after the commit: what was read in between is invalidated too.
 * - `deliver` then waits `FEED_SETTLE_MS`, which is longer than `FEED_LOOK_MS`: later calls of `current` have read the mark.
 *
 * If the machine is suspended, all processes and the clock that they compare are. A paused or slow process reads the mark
 * when it resumes. A process that dies between the commit and the second mark has not confirmed its change to anybody.
 */
export function fileChangeFeed(dataDir: string): ChangeFeed {
  const file = join(dataDir, CHANGES_FILE);
  const listeners: ((change: Announcement | 'everything') => void)[] = [];
  const writeMark = () => writeFileSync(file, randomUUID(), { mode: 0o600 });
  let seen: string | undefined;
  let lookedMs = Number.NEGATIVE_INFINITY;

  const look = () => {
    // Set before the read, which may miss a mark that is written during it.
    lookedMs = performance.now();
    let mark: string | undefined;
    try {
      mark = MARK.exec(readFileSync(file, 'latin1'))?.[0];
    } catch {
      // Without a file there is no mark.
    }
    if (mark === seen) return;
    seen = mark;
    for (const listener of listeners) listener('everything');
  };

  look();
  if (seen === undefined) {
    writeMark();
    look();
  }
  return {
    async note(_tx, changes) {
      if (urgent(changes).length > 0) writeMark();
    },
    async deliver(changes) {
      if (urgent(changes).length === 0) {
        for (const change of changes) for (const listener of listeners) listener(change);
        return;
      }
      writeMark();
      look();
      await sleep(FEED_SETTLE_MS);
    },
    listen: (listener) => void listeners.push(listener),
    current() {
      if (performance.now() - lookedMs >= FEED_LOOK_MS) look();
      // Without a mark this process cannot tell; the next change writes a new one.
      return seen !== undefined;
    },
    currentUntilMs: () => performance.now(),
    stop: async () => {},
  };
}
