/** Counts what a piece of code does, as V8 itself counts it: no clock, and nothing of it is in the code that serves. */
import { Session } from 'node:inspector/promises';

export interface WorkCounter {
  /** Blocks of `src` that ran. */
  steps(run: () => void): Promise<number>;
  /** Bytes that were allocated, by sampling: copies made inside of V8 (spreads, slices, joined strings) run no block. */
  bytes(run: () => void): Promise<number>;
  stop(): Promise<void>;
}

interface SampledNode {
  selfSize: number;
  children: SampledNode[];
}

const sizeOf = ({ selfSize, children }: SampledNode): number =>
  children.reduce((sum, child) => sum + sizeOf(child), selfSize);

export async function startWorkCounter(): Promise<WorkCounter> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('HeapProfiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  /** Steps since it was last asked. */
  async function stepsSince(): Promise<number> {
    const { result } = await session.post('Profiler.takePreciseCoverage');
    let steps = 0;
    for (const { url, functions } of result) {
      if (!url.includes('/src/')) continue;
      for (const { ranges } of functions) for (const { count } of ranges) steps += count;
    }
    return steps;
  }
  return {
    async steps(run) {
      await stepsSince();
      run();
      return stepsSince();
    },
    async bytes(run) {
      await session.post('HeapProfiler.startSampling', {
        samplingInterval: 16_384,
        stackDepth: 1,
        includeObjectsCollectedByMajorGC: true,
        includeObjectsCollectedByMinorGC: true,
      });
      run();
      const { profile } = await session.post('HeapProfiler.stopSampling');
      return sizeOf(profile.head);
    },
    async stop() {
      await session.post('Profiler.stopPreciseCoverage');
      session.disconnect();
    },
  };
}
