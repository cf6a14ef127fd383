import type { Queries } from './queries.ts';

/**
 * A change of something that nodes cache: an API key (`id` is its hash), a policy (`id` is that of a guardrail, workspace, user or
 * organization), the deletion of a workspace, or a new API key, which may be cached as unknown for a moment.
 */
export interface Announcement {
  topic: 'keys' | 'policy' | 'workspace_gone' | 'key_made';
  id: string;
}

/** The changes without new keys, whose announcement no caller waits for. */
export function urgent(changes: readonly Announcement[]): readonly Announcement[] {
  return changes.filter(({ topic }) => topic !== 'key_made');
}

/**
 * Invalidates the caches of all nodes on one store. Once `deliver` has resolved, a node that checks `current` before it reads
 * its cache does not use an entry from before the change.
 */
export interface ChangeFeed {
  /** Call it last in the transaction of the changes: they are announced if it commits. */
  note(tx: Queries, changes: readonly Announcement[]): Promise<void>;
  /** Call it after the commit. Resolves when no live node uses older entries, at the latest after `ANNOUNCE_MS_MAX`. */
  deliver(changes: readonly Announcement[]): Promise<void>;
  /**
   * Adds a listener for every change, this node's own included; it is called before `deliver` resolves. `everything`: changes
   * may have been missed, so all cached entries are invalid.
   */
  listen(listener: (change: Announcement | 'everything') => void): void;
  /**
   * False while this node may miss changes, or was suspended since the last check: the cache must not be used then. Call it
   * right before each read of the cache; it may call listeners.
   */
  current(): boolean;
  /**
   * The moment of the monotonic clock, in milliseconds, up to which this node has received every change: cached entries were
   * valid then. Does not advance while the feed is disconnected.
   */
  currentUntilMs(): number;
  stop(): Promise<void>;
}

/** The feed of a process that is the only user of its store. */
export function localChangeFeed(): ChangeFeed {
  const listeners: ((change: Announcement) => void)[] = [];
  return {
    note: async () => {},
    deliver: async (changes) => {
      for (const change of changes) for (const listener of listeners) listener(change);
    },
    listen: (listener) => void listeners.push(listener),
    current: () => true,
    currentUntilMs: () => performance.now(),
    stop: async () => {},
  };
}
