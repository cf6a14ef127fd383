import type { Queries } from './database.ts';

/** Something that nodes keep in memory has changed: an API key (`id` is its hash), or what a policy is made of. */
export interface Announcement {
  topic: 'keys' | 'policy';
  id: string;
}

/** How nodes on one store tell each other what they must forget. */
export interface ChangeFeed {
  /** Called in the transaction of the change: it is told if and only if that commits. */
  note(tx: Queries, change: Announcement): Promise<void>;
  /** Called after the commit: resolves when every live node has heard it, at the latest after `limits.announce_ms_max`. */
  heard(changes: readonly Announcement[]): Promise<void>;
  /** Adds somebody to be told of every change, this node's own included, before `heard` resolves. */
  listen(listener: (change: Announcement) => void): void;
  /** False while this node cannot be sure to hear of changes: what it remembers must not be used then. */
  current(): boolean;
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
    stop: async () => {},
  };
}
