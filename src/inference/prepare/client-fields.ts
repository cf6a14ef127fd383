import { GatewayError } from '../../errors.ts';
import type { Report } from '../../providers/dialect.ts';
import type { Call } from '../call.ts';

/** A field of the inner language at the beginning of a sentence about it: `messages[0].content[1]: …`, `max_tokens must …`. */
const FIELD = /^([a-z][a-z_]*(?:\[\d+\]|\.[a-z_]+)*)(:? )/;

/** A refusal whose field has the name that the client gave it. */
export function inClientsWords(error: GatewayError, { fieldName }: Pick<Call, 'fieldName'>): GatewayError {
  const [, field, end = ''] = FIELD.exec(error.message) ?? [];
  if (fieldName === undefined || field === undefined) return error;
  const path = fieldName(field);
  const rule = error.message.slice(field.length + end.length);
  return new GatewayError(error.status, path + end + rule, {
    ...error,
    metadata: { ...error.metadata, violations: [{ path, rule }] },
    cause: error.cause,
  });
}

/** What was changed in a request, by the names that its client knows. */
export function reportInClientsWords(report: readonly Report[], { fieldName }: Pick<Call, 'fieldName'>): Report[] {
  return report.map((one) => (fieldName === undefined ? one : { ...one, field: fieldName(one.field) }));
}
