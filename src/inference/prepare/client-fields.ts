import { GatewayError } from '../../errors.ts';
import type { Report } from '../../providers/dialect.ts';
import type { Call } from '../call.ts';

/** A field of the inner language at the start of a message: `messages[0].content[1]: …`, `max_tokens must …`. */
const FIELD = /^([a-z][a-z_]*(?:\[\d+\]|\.[a-z_]+)*)(:? )/;

/** The refusal with its field renamed to the name in the client's API. */
export function inClientsWords(error: GatewayError, { fieldName }: Pick<Call, 'fieldName'>): GatewayError {
  const [, field, separator = ''] = FIELD.exec(error.message) ?? [];
  if (fieldName === undefined || field === undefined) return error;
  const path = fieldName(field);
  const rule = error.message.slice(field.length + separator.length);
  return new GatewayError(error.status, path + separator + rule, {
    ...error,
    metadata: { ...error.metadata, violations: [{ path, rule }] },
    cause: error.cause,
  });
}

/** The changes of a request with the field names of the client's API. */
export function reportInClientsWords(report: readonly Report[], { fieldName }: Pick<Call, 'fieldName'>): Report[] {
  return report.map((change) => (fieldName === undefined ? change : { ...change, field: fieldName(change.field) }));
}
