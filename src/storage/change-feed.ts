import type { Queries } from './database.ts';

/** Something that nodes keep in memory has changed: an API key (`id` is its hash), what a policy is made of; or a workspace is gone. */
export interface Announcement {
  topic: 'keys' | 'policy' | 'workspace_gone';
  id: string;
}

/**
 * How nodes on one store tell each other what they must forget. What it promises: once `heard` has resolved, no node
 * that asks `current` before it looks into its memory is served there with what was true before the change.
 */
export interface ChangeFeed {
  /** Called in the transaction of the changes, last: they are told if that commits. */
  note(tx: Queries, changes: readonly Announcement[]): Promise<void>;
  /** Called after the commit: resolves when no live node remembers what was before, at the latest after `limits.announce_ms_max`. */
  heard(changes: readonly Announcement[]): Promise<void>;
  /**
   * Adds somebody to be told of every change, this node's own included, before `heard` resolves. `everything`: changes
   * may have been missed, so nothing remembered is to be used any more.
   */
  listen(listener: (change: Announcement | 'everything') => void): void;
  /**
   * False while this node cannot be sure to hear of changes, or was suspended since it was sure: what it remembers must not be used then. Asked right before
   * memory is looked into, since listeners may be called by it.
   */
  current(): boolean;
  /**
   * Up to which moment of the monotonic clock this node has heard of every change: what it remembers was true then. Stays
   * as it is while nothing is heard.
   */
  heardUntil_ms(): number;
  stop(): Promise<void>;
}

/** The feed of a process that has its store for itself. */
export function localChangeFeed(): ChangeFeed {
  const listeners: ((change: Announcement) => void)[] = [];
  return {
    note: async () => {},
    heard: async (changes) => {
      for (const change of changes) for (const listener of listeners) listener(change);
    },
    listen: (listener) => void listeners.push(listener),
    current: () => true,
    heardUntil_ms: () => performance.now(),
    stop: async () => {},
  };
}
