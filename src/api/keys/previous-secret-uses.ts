import type { KeyStore } from '../../storage/keys.ts';

/** The interval of writes, and so the delay of the last use that the API shows. */
const WRITE_MS = 30_000;
/** Secrets that are remembered between two writes. Further ones are written at once. */
const SECRETS_MAX = 1_000;

export interface PreviousSecretUsesOptions {
  keys: Pick<KeyStore, 'markPreviousUse'>;
  log: { warn(facts: object, message: string): void };
}

/**
 * Remembers when requests used previous secrets of rotated keys, and writes the last use of each every half minute: requests wait for
 * nothing, and a busy program costs two statements a minute. A use that cannot be written is written later, unless the process ends.
 */
export function createPreviousSecretUses({ keys, log }: PreviousSecretUsesOptions) {
  let uses = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  const use = (digest: string, at: number): void => {
    uses.set(digest, Math.max(at, uses.get(digest) ?? 0));
    if (uses.size >= SECRETS_MAX) void write();
    else timer ??= setTimeout(write, WRITE_MS).unref();
  };

  async function writeAll(written: ReadonlyMap<string, number>): Promise<void> {
    const failed: [string, number][] = [];
    let reason: unknown;
    for (const [digest, at] of written) {
      try {
        await keys.markPreviousUse(digest, new Date(at).toISOString());
      } catch (error) {
        reason = error;
        failed.push([digest, at]);
      }
    }
    if (failed.length === 0) return;
    log.warn(
      { err: reason, secrets: failed.length },
      'the last use of previous secrets of keys could not be stored yet',
    );
    // Beyond the bound they are lost: the next use of each is written again.
    for (const [digest, at] of failed) if (uses.size < SECRETS_MAX - 1) use(digest, at);
  }

  /** Writes the remembered uses, after the writes in progress. Never rejects. */
  function write(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    const written = uses;
    uses = new Map();
    writing = writing.then(() => writeAll(written));
    return writing;
  }

  return { use, write, stop: write };
}
