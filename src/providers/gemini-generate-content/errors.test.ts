import { describe, expect, test } from 'vitest';
import { decodeError } from './errors.ts';

const body = (code: number, status: string, message = 'No.', details: object[] = []) =>
  JSON.stringify({ error: { code, message, status, details } });

describe('the class of a failure', () => {
  test.each([
    [400, 'INVALID_ARGUMENT', 'Bad.', 'invalid_request'],
    [400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.', 'credential'],
    [400, 'FAILED_PRECONDITION', 'User location is not supported for the API use.', 'credential'],
    [400, 'INVALID_ARGUMENT', 'Thought signature is not valid.', 'state_rejected'],
    [400, 'INVALID_ARGUMENT', 'Function call is missing a thought_signature in functionCall parts.', 'state_rejected'],
    [401, 'UNAUTHENTICATED', 'Request had invalid authentication credentials.', 'credential'],
    [403, 'PERMISSION_DENIED', 'Permission denied.', 'credential'],
    [403, 'PERMISSION_DENIED', 'This API method requires billing to be enabled.', 'payment'],
    [404, 'NOT_FOUND', 'models/x is not found.', 'not_found'],
    [429, 'RESOURCE_EXHAUSTED', 'Quota exceeded.', 'rate_limited'],
    [499, 'CANCELLED', 'Cancelled.', 'unavailable'],
    [500, 'INTERNAL', 'Internal.', 'unavailable'],
    [503, 'UNAVAILABLE', 'The model is overloaded.', 'overloaded'],
    [504, 'DEADLINE_EXCEEDED', 'Deadline expired.', 'timeout'],
  ])('%i %s: %s', (status, name, message, failure) => {
    const error = decodeError(status, {}, body(status, name, message));
    expect([error.failure, error.status, error.native_code, error.message]).toEqual([failure, status, name, message]);
    // In a list, as in streams.
    expect(decodeError(status, {}, `[${body(status, name, message)}]`).failure).toBe(failure);
  });

  test('follows also from the reason in the details', () => {
    const reason = (text: string) => [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: text }];
    expect(decodeError(400, {}, body(400, 'INVALID_ARGUMENT', 'No.', reason('API_KEY_INVALID'))).failure).toBe(
      'credential',
    );
    expect(decodeError(403, {}, body(403, 'PERMISSION_DENIED', 'No.', reason('BILLING_DISABLED'))).failure).toBe(
      'payment',
    );
  });
});

test('the wait is read from the details if no header states it', () => {
  const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.074s' }];
  expect(decodeError(429, {}, body(429, 'RESOURCE_EXHAUSTED', 'No.', details)).retry_after_ms).toBe(34_074);
  expect(decodeError(429, { 'retry-after': '2' }, body(429, 'RESOURCE_EXHAUSTED', 'No.', details)).retry_after_ms).toBe(
    2_000,
  );
});

test('an error that is not of this wire is classified by its status', () => {
  for (const text of ['', '<html>', '[]', '{"error":null}', 'null', '{"error":{"details":7}}']) {
    expect(decodeError(502, {}, text)).toMatchObject({ failure: 'unavailable', status: 502, native_code: null });
  }
});
