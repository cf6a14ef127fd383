import { describe, expect, test } from 'vitest';
import { decodeError } from './errors.ts';

const errorBody = (type: string, message: string) => JSON.stringify({ type: 'error', error: { type, message } });
const bad = (message: string) => errorBody('invalid_request_error', message);

test('an error in a list, as Google sends it for streams of Claude, keeps its message', () => {
  const error = { code: 429, message: 'Quota exceeded for online_prediction.', status: 'RESOURCE_EXHAUSTED' };
  for (const body of [[{ error }], { error }]) {
    expect(decodeError(429, {}, JSON.stringify(body))).toMatchObject({
      message: error.message,
      failure: 'rate_limited',
    });
  }
  expect(decodeError(500, {}, '[]')).toMatchObject({ failure: 'unavailable' });
});

describe('the failure class of an error response', () => {
  test.each([
    [400, bad('Your credit balance is too low to access the Anthropic API.'), 'payment'],
    [400, bad('You have reached your specified API usage limits. You will regain access on 2026-12-01.'), 'payment'],
    [400, bad('This organization has been disabled.'), 'credential'],
    [400, bad('Output blocked by content filtering policy'), 'content_filter'],
    [400, bad('messages.1.content.0: Invalid `signature` in `thinking` block'), 'state_rejected'],
    [400, bad('messages.1.content.0: Invalid `data` in `redacted_thinking` block'), 'state_rejected'],
    [400, bad('messages.1: `thinking` blocks in the latest assistant message cannot be modified'), 'state_rejected'],
    [400, bad('prompt is too long: 210000 tokens > 200000 maximum'), 'invalid_request'],
    // Words of the request inside a message are not the provider’s.
    [400, bad('tools.0.name: "your credit balance is too low" does not match'), 'invalid_request'],
    [401, errorBody('authentication_error', 'invalid x-api-key'), 'credential'],
    [403, errorBody('permission_error', 'no access'), 'credential'],
    [404, errorBody('not_found_error', 'model: claude-none'), 'not_found'],
    [413, errorBody('request_too_large', 'too large'), 'invalid_request'],
    [429, errorBody('rate_limit_error', 'slow down'), 'rate_limited'],
    [500, errorBody('api_error', 'Internal server error'), 'unavailable'],
    [504, errorBody('timeout_error', 'late'), 'timeout'],
    [529, errorBody('overloaded_error', 'Overloaded'), 'overloaded'],
    [529, '', 'overloaded'],
    [429, bad('Too many requests'), 'rate_limited'],
    [401, bad('Invalid bearer token'), 'credential'],
    [503, bad('No capacity'), 'unavailable'],
    [502, '<html>', 'unavailable'],
    [429, '{"error":"busy"}', 'rate_limited'],
    [400, '{"error":null,"message":null}', 'invalid_request'],
    [400, '[]', 'invalid_request'],
  ] as const)('%i %s: %s', (status, body, failure) => {
    expect(decodeError(status, {}, body)).toMatchObject({ failure, status });
  });
});
