import { expect, test } from 'vitest';
import type { Exchange, UpstreamResponse } from '../../providers/transport/upstream.ts';
import { DeferredExchange } from './deferred-exchange.ts';

const response: UpstreamResponse = {
  status: 200,
  headers: {},
  complete: true,
  ready: () => undefined,
  read: () => undefined,
};

/** The scripted exchange: the test sets its answer and its end. */
function begun() {
  const answered = Promise.withResolvers<UpstreamResponse>();
  const aborts: Error[] = [];
  const exchange: Exchange = {
    response: answered.promise,
    abort(reason) {
      aborts.push(reason);
      answered.reject(reason);
    },
    ended: false,
  };
  return { exchange, answered, aborts };
}

test('the awaited value is passed on, and the answer is that of the exchange', async () => {
  const { exchange, answered } = begun();
  const got: string[] = [];
  const deferred = new DeferredExchange(Promise.resolve('token'), (token) => {
    got.push(token);
    return exchange;
  });
  answered.resolve(response);
  expect(await deferred.response).toBe(response);
  expect([got, deferred.ended]).toEqual([['token'], false]);
});

test('an exchange that is aborted before it starts never starts', async () => {
  const ready = Promise.withResolvers<string>();
  let began = 0;
  const deferred = new DeferredExchange(ready.promise, () => {
    began += 1;
    return begun().exchange;
  });
  deferred.abort(new Error('gone'));
  ready.resolve('token');
  await expect(deferred.response).rejects.toThrow('gone');
  expect([began, deferred.ended]).toEqual([0, true]);
});

test('an abort after the start aborts the exchange', async () => {
  const { exchange, aborts } = begun();
  const deferred = new DeferredExchange(Promise.resolve(1), () => exchange);
  await Promise.resolve();
  await Promise.resolve();
  deferred.abort(new Error('late'));
  await expect(deferred.response).rejects.toThrow('late');
  expect(aborts).toHaveLength(1);
});

test('an error that prevents the start is the error of the answer', async () => {
  const refused = new DeferredExchange(Promise.reject(new Error('no token')), () => begun().exchange);
  await expect(refused.response).rejects.toThrow('no token');
  const broken = new DeferredExchange(Promise.resolve(1), () => {
    throw new Error('no address');
  });
  await expect(broken.response).rejects.toThrow('no address');
  expect([refused.ended, broken.ended]).toEqual([true, true]);
});
