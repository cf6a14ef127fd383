import { call } from './api.ts';

export const FIGURE_DAYS = 7;
const HOUR_MS = 3_600_000;

export const MEASURES = {
  ttft: 'First token',
  latency: 'Duration',
  throughput: 'Tokens/s',
} as const;
export type Measure = keyof typeof MEASURES;
export const measures = Object.keys(MEASURES) as Measure[];
export const SHARES = ['p50', 'p90', 'p95', 'p99'] as const;

/** Measured calls of a model or provider; a figure is null if no call has it. */
export type Figures = Record<string, string | number | null>;

/** The path of the operations of one model. */
export function modelPath(id: string): { author: string; slug: string } {
  const slash = id.indexOf('/');
  return { author: id.slice(0, slash), slug: id.slice(slash + 1) };
}

/** The last days, until the end of this hour. */
export function figureRange(): { start: string; end: string } {
  const end = Math.ceil((Date.now() + 1) / HOUR_MS) * HOUR_MS;
  const text = (moment: number) => `${new Date(moment).toISOString().slice(0, 19)}Z`;
  return { start: text(end - FIGURE_DAYS * 24 * HOUR_MS), end: text(end) };
}

/** The speed of the calls of these models in the last days: by model, or by the provider that answered. */
export async function loadFigures(
  models: readonly string[],
  by: 'model' | 'provider',
  signal: AbortSignal,
): Promise<Figures[]> {
  const { data } = await call(
    'queryAnalytics',
    {
      body: {
        metrics: [
          'request_count',
          'error_count',
          ...measures.flatMap((measure) => SHARES.map((share) => `${share}_${measure}` as const)),
        ],
        dimensions: [by],
        filters: [{ field: 'model', operator: 'in', value: [...models] }],
        time_range: figureRange(),
      },
    },
    signal,
  );
  return data.data as Figures[];
}
