import Type, { type TObject } from 'typebox';
import type { ErrorStatus } from '../errors.ts';

/** The body of every error status (specification, section Errors). */
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
 * Declares the error statuses of an operation in its response schema. Operations that read the store declare 500, and thereby also 503:
 * the store may not answer for a while, and `retry-after` says when to try again.
 */
export function errors(...statuses: ErrorStatus[]): Record<number, TObject> {
  const declared = new Set(statuses.includes(500) ? [...statuses, 503 as const] : statuses);
  return Object.fromEntries([...declared].map((status) => [status, ErrorBody]));
}
