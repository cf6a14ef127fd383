import Type from 'typebox';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { DIMENSIONS, GRANULARITIES, METRICS, OPERATORS } from './metrics.ts';

const Named = { name: Type.String(), display_label: Type.String() };

const AnalyticsMeta = Type.Object(
  {
    dimensions: Type.Array(Type.Object(Named)),
    granularities: Type.Array(Type.Object({ ...Named, name: Type.Enum([...GRANULARITIES]) })),
    metrics: Type.Array(
      Type.Object({
        ...Named,
        display_format: Type.Enum(['number', 'currency', 'percent', 'latency', 'throughput']),
        is_rate: Type.Boolean({ description: 'Not a sum: values of several rows cannot be added.' }),
      }),
    ),
    operators: Type.Array(Type.Object({ name: Type.Enum([...OPERATORS]), value_type: Type.Enum(['scalar', 'array']) })),
  },
  { title: 'AnalyticsMeta' },
);

/** Serves `GET /analytics/meta`: the metrics, dimensions, granularities and operators of `POST /analytics/query`. */
export function getAnalyticsMeta(server: Server): void {
  server.route({
    method: 'GET',
    url: '/analytics/meta',
    config: { access: 'management', forMembers: true },
    schema: {
      operationId: 'getAnalyticsMeta',
      tags: ['Analytics'],
      summary: 'Lists the metrics, dimensions, granularities and operators of analytics queries.',
      response: { 200: Type.Object({ data: AnalyticsMeta }), ...errors(401, 403, 429, 500) },
    },
    handler: () => ({
      data: {
        dimensions: [...DIMENSIONS].map(([name, { label }]) => ({ name, display_label: label })),
        granularities: GRANULARITIES.map((name) => ({
          name,
          display_label: `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`,
        })),
        metrics: [...METRICS].map(([name, { label, format, isRate }]) => {
          return { name, display_label: label, display_format: format, is_rate: isRate };
        }),
        operators: OPERATORS.map((name) => ({
          name,
          value_type: name === 'in' || name === 'not_in' ? ('array' as const) : ('scalar' as const),
        })),
      },
    }),
  });
}
