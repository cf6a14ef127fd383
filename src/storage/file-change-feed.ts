import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../limits.ts';
import type { Announcement, ChangeFeed } from './change-feed.ts';

/** Beside the embedded store; its content is another one after every change. */
const CHANGES_FILE = 'changes';

/** A mark that somebody is just writing is none: two of these would look the same, whatever changed between them. */
const MARK = /^[\da-f-]{36}$/;

function markOf(file: string): string | undefined {
  try {
    return MARK.exec(readFileSync(file, 'latin1'))?.[0];
  } catch {
    return undefined;
  }
}

/**
 * The feed of the processes that share an embedded store: workers, a second gateway, the commands. All of them are on
 * one machine, with one clock and one view of its files; so a mark in a file is enough, and nobody needs to know who
 * else is there, to be reachable or to run at all.
 *
 * - Who asks `current` looks at the mark, unless it did so less than `feed_look_ms` ago; another mark means `everything`.
 * - A change is marked in its transaction and once more after the commit: what was read in between is forgotten too.
 * - `heard` then waits `feed_settle_ms`, which is longer than `feed_look_ms`. Whoever is asked later has looked since.
 *
 * A machine that is suspended suspends all of them, and the clock that they compare. A process that is paused or slow looks when it goes on. One that dies between commit and second mark has told nobody
 * that its change was made.
 */
export function fileChangeFeed(data_dir: string): ChangeFeed {
  const file = join(data_dir, CHANGES_FILE);
  const listeners: ((change: Announcement | 'everything') => void)[] = [];
  const mark = () => writeFileSync(file, randomUUID(), { mode: 0o600 });
  let seen: string | undefined;
  let looked_ms = Number.NEGATIVE_INFINITY;

  const look = () => {
    // Before the reading: what is marked while it goes on may be missed by it.
    looked_ms = performance.now();
    const found = markOf(file);
    if (found === seen) return;
    seen = found;
    for (const listener of listeners) listener('everything');
  };

  if (markOf(file) === undefined) mark();
  look();
  return {
    async note(_tx, changes) {
      if (changes.length > 0) mark();
    },
    async heard(changes) {
      if (changes.length === 0) return;
      mark();
      look();
      await sleep(limits.feed_settle_ms);
    },
    listen: (listener) => void listeners.push(listener),
    current() {
      if (performance.now() - looked_ms >= limits.feed_look_ms) look();
      // Without a mark this process cannot tell; the next change makes it anew.
      return seen !== undefined;
    },
    heardUntil_ms: () => performance.now(),
    stop: async () => {},
  };
}
