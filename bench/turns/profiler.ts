/** Reports which functions ran between two moments. */
import { type Profiler, Session } from 'node:inspector/promises';

const SAMPLE_US = 500;
const SHOWN = 14;

export interface TurnProfiler {
  /**
   * The functions with the most time of their own, and their callers in this repository, between two moments of
   * `performance.now()`. Then a new profile begins.
   */
  within(fromMs: number, toMs: number): Promise<string[]>;
}

function placeOf({ functionName, url, lineNumber }: Profiler.ProfileNode['callFrame']): string {
  return `${functionName || '(anonymous)'} ${url.replace(/^.*\/(?=src|node_modules)/, '')}:${lineNumber + 1}`;
}

export async function startProfiler(): Promise<TurnProfiler> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: SAMPLE_US });
  await session.post('Profiler.start');
  /** Microseconds of the profile's clock at the origin of `performance.now()`. */
  const originUs = Number(process.hrtime.bigint() / 1_000n) - performance.now() * 1_000;
  return {
    async within(fromMs, toMs) {
      const { profile } = await session.post('Profiler.stop');
      await session.post('Profiler.start');
      const { nodes, samples = [], timeDeltas = [], startTime } = profile;
      const byId = new Map(nodes.map((node) => [node.id, node]));
      const parents = new Map<number, number>();
      for (const { id, children = [] } of nodes) for (const child of children) parents.set(child, id);
      const sums = new Map<string, number>();
      let atUs = startTime;
      for (const [at, id] of samples.entries()) {
        atUs += timeDeltas[at]!;
        const ms = (atUs - originUs) / 1_000;
        if (ms < fromMs || ms > toMs) continue;
        const spentMs = (timeDeltas[at + 1] ?? 0) / 1_000;
        const seen = new Set<string>();
        const own = `own   ${placeOf(byId.get(id)!.callFrame)}`;
        sums.set(own, (sums.get(own) ?? 0) + spentMs);
        for (let node: number | undefined = id; node !== undefined; node = parents.get(node)) {
          const { callFrame } = byId.get(node)!;
          const place = `total ${placeOf(callFrame)}`;
          if (seen.has(place) || !callFrame.url.includes('/src/')) continue;
          seen.add(place);
          sums.set(place, (sums.get(place) ?? 0) + spentMs);
        }
      }
      return ['own', 'total'].flatMap((kind) =>
        [...sums]
          .filter(([place]) => place.startsWith(kind))
          .sort(([, a], [, b]) => b - a)
          .slice(0, SHOWN)
          .map(([place, ms]) => `${ms.toFixed(1).padStart(8)} ms ${place}`),
      );
    },
  };
}
