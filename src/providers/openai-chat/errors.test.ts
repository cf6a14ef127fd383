import { describe, expect, test } from 'vitest';
import { limits } from '../../limits.ts';
import { decodeError, errorInside } from './errors.ts';

const body = (message: string, code: string | null = null, type = 'invalid_request_error'): string =>
  JSON.stringify({ error: { message, type, param: null, code } });

describe('the class of an error answer', () => {
  test.each<[number, string, string]>([
    [400, body('Unknown parameter.'), 'invalid_request'],
    [400, body('Your credit balance is too low to access the API.'), 'payment'],
    [400, body('API key not valid. Please pass a valid API key.'), 'credential'],
    [400, body('The model `x` does not exist', 'model_not_found'), 'not_found'],
    [400, '{"success":false,"errors":[{"code":5007,"message":"No such model @cf/a/b or task"}]}', 'not_found'],
    [400, body('Filtered.', 'content_filter'), 'content_filter'],
    [400, body('Failed to call a function.', 'tool_use_failed'), 'invalid_response'],
    [400, body('Invalid thought_signature in part 2'), 'state_rejected'],
    [400, body("This model's maximum context length is 8192 tokens.", 'context_length_exceeded'), 'invalid_request'],
    [401, body('Incorrect API key provided.', 'invalid_api_key'), 'credential'],
    [402, body('Insufficient Balance'), 'payment'],
    [403, body('Country not supported'), 'credential'],
    [403, body('Content violates usage guidelines.'), 'content_filter'],
    [404, body('The model does not exist', 'model_not_found'), 'not_found'],
    [404, '404 page not found', 'not_found'],
    [405, '', 'not_found'],
    [408, '', 'timeout'],
    [409, '', 'conflict'],
    [413, body('Request too large'), 'invalid_request'],
    [422, JSON.stringify({ detail: 'Not good' }), 'invalid_request'],
    [425, '', 'conflict'],
    [429, body('Rate limit reached', 'rate_limit_exceeded'), 'rate_limited'],
    [429, body('You exceeded your current quota', 'insufficient_quota'), 'payment'],
    [500, body('Internal error'), 'unavailable'],
    [502, '<html>Bad gateway</html>', 'unavailable'],
    [503, body('The engine is currently overloaded'), 'overloaded'],
    [503, 'no healthy upstream', 'unavailable'],
    [529, '', 'overloaded'],
  ])('%i %s is %s', (status, text, failure) => {
    expect(decodeError(status, {}, text)).toMatchObject({ failure, status, raw: text });
  });
});

describe('the message of an error answer', () => {
  test.each<[string, string, string, string | null]>([
    ['OpenAI’s', body('No.', 'a_code'), 'No.', 'a_code'],
    ['a type if there is no code', body('No.'), 'No.', 'invalid_request_error'],
    ['a text as error', '{"error":"model is loading"}', 'model is loading', null],
    ['Mistral’s', '{"object":"error","message":"Bad.","type":"t","code":1500}', 'Bad.', '1500'],
    ['FastAPI’s list', '{"detail":[{"loc":["body","n"],"msg":"too large"},{"msg":"b"}]}', 'body.n: too large; b', null],
    ['Google’s list', '[{"error":{"code":400,"message":"Bad.","status":"INVALID_ARGUMENT"}}]', 'Bad.', '400'],
    ['Cloudflare’s list', '{"result":null,"success":false,"errors":[{"code":5004,"message":"Bad."}]}', 'Bad.', '5004'],
    ['plain text', 'upstream connect error', 'upstream connect error', null],
    ['a web page', '<!DOCTYPE html><html></html>', 'The upstream answered with status 400.', null],
    ['nothing', '', 'The upstream answered with status 400.', null],
    ['JSON without a message', '{"a":1}', 'The upstream answered with status 400.', null],
  ])('is read from %s', (_rule, text, message, nativeCode) => {
    expect(decodeError(400, {}, text)).toMatchObject({ message, native_code: nativeCode });
  });

  test('is bounded', () => {
    const error = decodeError(500, {}, 'x'.repeat(1_000_000));
    expect(error.message.length).toBe(limits.upstream_raw_chars_max);
    expect(error.raw!.length).toBe(limits.upstream_raw_chars_max);
  });

  test('the wait of the headers is used', () => {
    expect(decodeError(429, { 'retry-after': '3' }, '').retry_after_ms).toBe(3_000);
  });
});

describe('an error inside a 200', () => {
  test.each<[string, unknown, string | undefined, number | undefined]>([
    ['has a status of its own', { error: { message: 'x', code: 429 } }, 'rate_limited', 429],
    [
      'has a status code',
      { error: { message: 'x', code: 'tool_use_failed', status_code: 400 } },
      'invalid_response',
      400,
    ],
    ['is classified by its code', { error: { message: 'x', type: 'overloaded_error' } }, 'overloaded', 503],
    ['is an upstream failure if it states nothing else', { error: { message: 'x' } }, 'unavailable', 502],
    ['may have Mistral’s shape', { object: 'error', message: 'x' }, 'unavailable', 502],
    ['is none if all members are zero', { error: { message: '', code: '' }, choices: [] }, undefined, undefined],
    ['is none if its code is the number zero', { error: { message: '', code: 0 }, choices: [] }, undefined, undefined],
    ['may be an empty account', { error: { message: 'x', code: 'insufficient_quota' } }, 'payment', 429],
    ['may be a bad credential', { error: { message: 'x', type: 'authentication_error' } }, 'credential', 401],
    ['may be an unknown model', { error: { message: 'x', code: 'model_not_found' } }, 'not_found', 404],
    ['may be a timeout', { error: { message: 'x', type: 'timeout' } }, 'timeout', 408],
    ['is none if the member is missing', { error: null, choices: [] }, undefined, undefined],
    ['is none if a completion has a message of its own', { message: 'note', choices: [] }, undefined, undefined],
  ])('%s', (_rule, value, failure, status) => {
    const error = errorInside(value);
    expect(error?.failure).toBe(failure);
    expect(error?.status ?? undefined).toBe(status);
  });
});

test.each([
  "Invalid value for tool 'billing_details'",
  'Unknown parameter: "invalid_api_key".',
  'schema `insufficient_quota` is invalid',
])('parts of the request quoted in a message do not classify the failure: %s', (message) => {
  expect(decodeError(400, {}, JSON.stringify({ error: { message } })).failure).toBe('invalid_request');
});
