import Type, { type TObject } from 'typebox';
import type { ErrorStatus } from '../errors.ts';

/** The one body of every error status (specification, section Errors). */
const ErrorBody = Type.Object(
  {
    error: Type.Object({
      code: Type.Integer({ description: 'The HTTP status.' }),
      message: Type.String(),
      metadata: Type.Union([Type.Object({}, { additionalProperties: true }), Type.Null()]),
    }),
    gateway_metadata: Type.Union([
      Type.Object(
        {},
        { additionalProperties: true, description: 'As in `RoutingMetadata`, for calls that were routed.' },
      ),
      Type.Null(),
    ]),
    user_id: Type.Union([Type.String(), Type.Null()]),
  },
  { title: 'Error' },
);

/**
 * Declares the error statuses of an operation in its response schema. Whoever asks the store may find that it does not
 * answer at the moment: 500 brings 503, which says in `retry-after` when to try again.
 */
export function errors(...statuses: ErrorStatus[]): Record<number, TObject> {
  const declared = new Set(statuses.includes(500) ? [...statuses, 503 as const] : statuses);
  return Object.fromEntries([...declared].map((status) => [status, ErrorBody]));
}
