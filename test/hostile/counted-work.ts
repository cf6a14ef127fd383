/**
 * Counts the work of a piece of code as V8 itself counts it: without a clock, and without any part in the code that
 * serves.
 */
import { Session } from 'node:inspector/promises';
import { setFlagsFromString } from 'node:v8';

export interface WorkCounter {
  /** The number of executed blocks of each function of `src`. */
  steps(run: () => void): Promise<Map<string, number>>;
  /** Allocated bytes, by sampling: copies made inside V8 (spreads, slices, joined strings) execute no block. */
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
  // A call that the optimizer inlines is not counted: without this, counts depend on when it compiles.
  setFlagsFromString('--no-opt');
  setFlagsFromString('--no-maglev');
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('HeapProfiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  /** Steps since the last call. */
  async function stepsSince(): Promise<Map<string, number>> {
    const { result } = await session.post('Profiler.takePreciseCoverage');
    const steps = new Map<string, number>();
    for (const { url, functions } of result) {
      const file = url.split('/src/')[1];
      if (file === undefined) continue;
      for (const { functionName, ranges } of functions) {
        const count = ranges.reduce((sum, range) => sum + range.count, 0);
        if (count > 0) steps.set(`${file} ${functionName || 'closure'} at ${ranges[0]!.startOffset}`, count);
      }
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
      // Files that run later in the same process must not run unoptimized.
      setFlagsFromString('--opt');
      setFlagsFromString('--maglev');
    },
  };
}
