import { setTimeout as sleep } from 'node:timers/promises';
import type { GenerationLists } from '../../storage/generation-lists.ts';

/** The pause after each portion, so that filling leaves the store to the calls. */
const PAUSE_MS = 20;
/** Nodes of an older version may write rows during an upgrade. */
const AGAIN_MS = 600_000;

/** Fills what generations are listed by into rows of older versions, in the background. */
export function createGenerationFill({
  lists,
  log,
}: {
  lists: Pick<GenerationLists, 'fill'>;
  log: { warn(facts: object, message: string): void };
}) {
  const stopping = new AbortController();
  let running: Promise<void> | undefined;
  let timer: ReturnType<typeof setInterval> | undefined;

  async function fillAll(): Promise<void> {
    try {
      while (!stopping.signal.aborted && (await lists.fill())) {
        await sleep(PAUSE_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
      }
    } catch (err) {
      log.warn({ err }, 'generations of older versions could not be prepared for lists; trying again');
    }
  }

  const run = () => {
    running ??= fillAll().finally(() => {
      running = undefined;
    });
  };
  return {
    start(): void {
      run();
      timer = setInterval(run, AGAIN_MS).unref();
    },
    async stop(): Promise<void> {
      clearInterval(timer);
      stopping.abort();
      await running;
    },
  };
}
