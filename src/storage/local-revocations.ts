import { chmodSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { limits } from '../limits.ts';

/** The list's file name inside the data directory: the hash or label of one key in each line. */
const REVOKED_FILE = 'revoked-keys';

/** The name of a key: its hash, or its label. */
const NAME = /^[\x21-\x7e]{1,200}$/;

function read(dataDir: string): string[] {
  const file = join(dataDir, REVOKED_FILE);
  const { size } = statSync(file, { throwIfNoEntry: false }) ?? { size: 0 };
  if (size === 0) return [];
  if (size > limits.local_revocations_bytes_max) throw new Error(`${file} is too large`);
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((name) => NAME.test(name));
}

/** Adds a key to those that gateways on this data directory refuse, or removes it. Returns the reason if it cannot. */
export function revokeLocally(dataDir: string, name: string, isRevoked: boolean): string | undefined {
  if (!NAME.test(name)) return 'KEY must be the hash or the label of a key.';
  const others = read(dataDir).filter((other) => other !== name);
  if (others.length >= limits.local_revocations_max) {
    return `${limits.local_revocations_max} keys are revoked on this node already; remove some with --undo.`;
  }
  const file = join(dataDir, REVOKED_FILE);
  const partial = `${file}.${process.pid}`;
  writeFileSync(partial, [...others, ...(isRevoked ? [name] : []), ''].join('\n'), { mode: 0o600, flush: true });
  chmodSync(partial, 0o600);
  renameSync(partial, file);
  return undefined;
}

/** The keys that an operator has revoked on this node alone; read at intervals, not on the request path. */
export interface LocalRevocations {
  /** A label stays in force after a rotation of the key, until the next one. */
  has(key: { hash: string; label: string; previous_label: string | null }): boolean;
  stop(): void;
}

/** Follows the list of a data directory. If it cannot be read, the last list stays in force and `onFault` is called once. */
export function followRevocations(dataDir: string, onFault: (error: unknown) => void): LocalRevocations {
  const file = join(dataDir, REVOKED_FILE);
  let names: ReadonlySet<string> = new Set();
  let seen = '';
  let isFaulty = false;
  const look = () => {
    try {
      const { mtimeMs, ino, size } = statSync(file, { throwIfNoEntry: false }) ?? { mtimeMs: 0, ino: 0, size: 0 };
      const mark = `${ino} ${mtimeMs} ${size}`;
      if (mark === seen) return;
      names = new Set(read(dataDir));
      seen = mark;
      isFaulty = false;
    } catch (error) {
      if (!isFaulty) onFault(error);
      isFaulty = true;
    }
  };
  look();
  const timer = setInterval(look, limits.local_revocations_look_ms).unref();
  return {
    has: ({ hash, label, previous_label }) =>
      names.size > 0 && (names.has(hash) || names.has(label) || (previous_label !== null && names.has(previous_label))),
    stop: () => clearInterval(timer),
  };
}
