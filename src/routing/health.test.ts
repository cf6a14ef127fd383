import { describe, expect, test } from 'vitest';
import { limits } from '../limits.ts';
import {
  COOL_DOWN_MS_DEFAULT,
  COOL_DOWN_MS_MAX,
  COOL_DOWN_TRIAL_MS_MAX,
  createHealth,
  OUTAGE_RECENT_MS,
} from './health.ts';

test('a failure starts a cool-down, which doubles with each consecutive failure up to a bound', () => {
  const health = createHealth();
  const waits: number[] = [];
  for (let count = 0; count < 8; count += 1) {
    health.failed('e', 'unavailable', undefined, 0);
    waits.push(health.coolingUntil('e', 0));
  }
  expect(waits.slice(0, 3)).toEqual([10_000, 20_000, 40_000]);
  expect(waits.at(-1)).toBe(COOL_DOWN_MS_MAX);
});

test('an upstream’s stated wait is used', () => {
  const health = createHealth();
  health.failed('e', 'rate_limited', 1_500, 100);
  expect(health.coolingUntil('e', 1_599)).toBe(1_600);
  expect(health.coolingUntil('e', 1_600)).toBe(0);
});

test('a shorter wait does not end a longer one', () => {
  const health = createHealth();
  health.failed('e', 'rate_limited', 60_000, 0);
  health.failed('e', 'rate_limited', 1_000, 100);
  expect(health.coolingUntil('e', 200)).toBe(60_000);
});

test.each([
  'rate_limited',
  'overloaded',
  'unavailable',
  'timeout',
  'credential',
  'payment',
  'not_found',
  'invalid_response',
] as const)('%s starts a cool-down', (failure) => {
  const health = createHealth();
  health.failed('e', failure, undefined, 0);
  expect(health.coolingUntil('e', 0)).toBeGreaterThan(0);
});

test('a success ends a cool-down without a stated wait', () => {
  const health = createHealth();
  health.failed('e', 'timeout', undefined, 0);
  health.failed('e', 'timeout', undefined, 0);
  health.succeeded('e', 1);
  expect(health.coolingUntil('e', 1)).toBe(0);
  expect(health.begin('e', 1)).toBe('open');
});

test('an endpoint that fails again soon continues its row of failures; after a steady time it does not', () => {
  const wait = COOL_DOWN_MS_DEFAULT;
  const steady = 2 * wait + OUTAGE_RECENT_MS;
  for (const [at, waited] of [
    [steady - 1, 2 * wait],
    [steady, wait],
  ] as const) {
    const health = createHealth();
    health.failed('e', 'unavailable', undefined, 0);
    health.succeeded('e', wait);
    health.succeeded('e', at);
    health.failed('e', 'unavailable', undefined, at + 1);
    expect(health.coolingUntil('e', at + 1)).toBe(at + 1 + waited);
  }
});

test('many concurrent failed calls are one failure', () => {
  const health = createHealth();
  for (let n = 0; n < 50; n += 1) health.failed('e', 'unavailable', undefined, 100 + n, n);
  expect(health.coolingUntil('e', 150)).toBe(100 + COOL_DOWN_MS_DEFAULT);
  // One of them does not end the trial of another.
  const over = 100 + COOL_DOWN_MS_DEFAULT;
  expect(health.begin('e', over)).toBe('trial');
  health.failed('e', 'timeout', undefined, over + 1, 60);
  expect(health.begin('e', over + 2)).toBe('busy');
});

test('the wait for a rate limit without a stated wait does not double', () => {
  const health = createHealth();
  for (const at of [0, 20_000, 40_000]) {
    health.failed('e', 'rate_limited', undefined, at);
    expect(health.coolingUntil('e', at)).toBe(at + COOL_DOWN_MS_DEFAULT);
  }
});

test('a success of a request that was sent before the failure does not end the cool-down', () => {
  const health = createHealth();
  health.failed('e', 'timeout', undefined, 10);
  health.succeeded('e', 20, 9);
  expect(health.coolingUntil('e', 20)).toBe(10 + COOL_DOWN_MS_DEFAULT);
});

test('an upstream’s stated wait is kept, whatever is answered meanwhile', () => {
  const health = createHealth();
  health.failed('e', 'rate_limited', 60_000, 0);
  health.succeeded('e', 30_000);
  expect(health.coolingUntil('e', 30_000)).toBe(60_000);
});

describe('after a cool-down', () => {
  const cooled = () => {
    const health = createHealth();
    health.failed('e', 'unavailable', undefined, 0);
    return health;
  };
  const over = COOL_DOWN_MS_DEFAULT;

  test('one call is the trial, and for others the endpoint cools down until the result', () => {
    const health = cooled();
    expect(health.begin('e', over - 1)).toBe('open');
    expect(health.coolingUntil('e', over)).toBe(0);
    expect(health.begin('e', over)).toBe('trial');
    expect(health.coolingUntil('e', over + 1)).toBeGreaterThan(over + 1);
    expect(health.begin('e', over + 1)).toBe('busy');
  });

  test('the success of the trial opens the endpoint for all', () => {
    const health = cooled();
    health.begin('e', over);
    health.succeeded('e', over + 5, over);
    expect(health.coolingUntil('e', over + 5)).toBe(0);
    expect(health.begin('e', over + 5)).toBe('open');
    expect(health.begin('e', over + 5)).toBe('open');
  });

  test('the failure of the trial starts a longer cool-down', () => {
    const health = cooled();
    health.begin('e', over);
    health.failed('e', 'unavailable', undefined, over + 5);
    expect(health.coolingUntil('e', over + 5)).toBe(over + 5 + 2 * COOL_DOWN_MS_DEFAULT);
    expect(health.begin('e', over + 6)).toBe('open');
  });

  test('a trial that ended without an outcome allows the next one immediately', () => {
    const health = cooled();
    health.begin('e', over);
    health.left('e');
    expect(health.coolingUntil('e', over + 1)).toBe(0);
    expect(health.begin('e', over + 1)).toBe('trial');
  });

  test('a trial without an outcome is awaited for a bounded time', () => {
    const health = cooled();
    health.begin('e', over);
    const late = over + COOL_DOWN_TRIAL_MS_MAX;
    expect(health.begin('e', late - 1)).toBe('busy');
    expect(health.coolingUntil('e', late)).toBe(0);
    expect(health.begin('e', late)).toBe('trial');
  });

  test('of a thousand concurrent calls, one is the trial', () => {
    const health = cooled();
    const turns = Array.from({ length: 1_000 }, () => health.begin('e', over));
    expect(turns.filter((turn) => turn === 'trial')).toHaveLength(1);
    expect(turns.filter((turn) => turn === 'busy')).toHaveLength(999);
  });
});

describe('an outage', () => {
  test('is recent for half a minute, also after the endpoint recovered', () => {
    const health = createHealth();
    health.failed('e', 'unavailable', undefined, 0);
    health.succeeded('e', 10);
    expect(health.coolingUntil('e', 10)).toBe(0);
    expect(health.hadOutage('e', 10)).toBe(true);
    expect(health.hadOutage('e', OUTAGE_RECENT_MS - 1)).toBe(true);
    expect(health.hadOutage('e', OUTAGE_RECENT_MS)).toBe(false);
    expect(health.hadOutage('other', 0)).toBe(false);
  });

  test('is not recorded if only few of many calls failed', () => {
    const health = createHealth();
    health.failed('e', 'unavailable', undefined, 0);
    for (let n = 0; n < 19; n += 1) health.succeeded('e', 1);
    expect(health.hadOutage('e', 1)).toBe(true);
    health.succeeded('e', 1);
    expect(health.hadOutage('e', 1)).toBe(false);
    health.failed('e', 'unavailable', undefined, 2);
    expect(health.hadOutage('e', 2)).toBe(true);
  });

  test('is not recorded for a rate limit', () => {
    const health = createHealth();
    health.failed('e', 'rate_limited', undefined, 0);
    expect(health.hadOutage('e', 0)).toBe(false);
  });

  test('follows from recent failures: earlier answers do not outweigh them', () => {
    const health = createHealth();
    health.failed('e', 'unavailable', undefined, 0);
    for (let n = 0; n < 1_000; n += 1) health.succeeded('e', 1);
    const later = 3 * OUTAGE_RECENT_MS;
    health.failed('e', 'unavailable', undefined, later);
    expect(health.hadOutage('e', later)).toBe(true);
  });
});

test.each([
  ['credential', 'refused'],
  ['payment', 'refused'],
  ['unavailable', 'failing'],
  ['timeout', 'failing'],
  ['rate_limited', 'rate_limited'],
] as const)('after %s an endpoint is %s, until it answers', (failure, condition) => {
  const health = createHealth();
  expect(health.condition('e', 0)).toBe('well');
  health.failed('e', failure, undefined, 0);
  expect(health.condition('e', 1)).toBe(condition);
  const over = COOL_DOWN_MS_DEFAULT;
  expect(health.condition('e', over)).toBe(failure === 'rate_limited' ? 'well' : condition);
  health.succeeded('e', over + 1);
  expect(health.condition('e', over + 1)).toBe('well');
});

test.each(['invalid_request', 'content_filter', 'state_rejected'] as const)(
  '%s does not start a cool-down',
  (failure) => {
    const health = createHealth();
    health.failed('e', failure, undefined, 0);
    expect(health.coolingUntil('e', 0)).toBe(0);
  },
);

test('the number of remembered endpoints is bounded, and the oldest failure is forgotten first', () => {
  const health = createHealth();
  for (let n = 0; n <= limits.health_endpoints_max; n += 1) health.failed(`e${n}`, 'unavailable', undefined, 0);
  expect(health.coolingUntil('e0', 0)).toBe(0);
  expect(health.coolingUntil('e1', 0)).toBeGreaterThan(0);
});

describe('silence', () => {
  test('of one call is no failure if the endpoint answers calls that were sent later', () => {
    const health = createHealth();
    health.answered('e', 1_000);
    health.silent('e', 20_000, 1_000);
    expect(health.coolingUntil('e', 20_000)).toBe(0);
    expect(health.condition('e', 20_000)).toBe('well');
    health.silent('e', 20_000, 1_001);
    expect(health.coolingUntil('e', 20_000)).toBeGreaterThan(20_000);
    expect(health.condition('e', 20_000)).toBe('failing');
  });

  test('is withdrawn as soon as any call is answered', () => {
    const health = createHealth();
    health.silent('e', 20_000, 1_000);
    health.silent('e', 21_000, 20_500);
    health.answered('e', 1_000);
    expect(health.coolingUntil('e', 21_000)).toBe(0);
    expect(health.hadOutage('e', 21_000)).toBe(false);
    health.failed('e', 'unavailable', undefined, 30_000);
    expect(health.coolingUntil('e', 30_000)).toBe(30_000 + COOL_DOWN_MS_DEFAULT);
  });

  test('leaves failures before it and after it', () => {
    const health = createHealth();
    health.failed('e', 'unavailable', undefined, 0);
    health.silent('e', 15_000, 11_000);
    health.answered('e', 11_000);
    expect(health.condition('e', 15_000)).toBe('failing');
    health.silent('e', 40_000, 21_000);
    health.failed('e', 'rate_limited', 60_000, 41_000, 40_500);
    health.answered('e', 21_000);
    expect(health.coolingUntil('e', 41_000)).toBe(101_000);
  });

  test('of concurrent calls is one failure', () => {
    const health = createHealth();
    for (let n = 0; n < 5; n += 1) health.silent('e', 20_000 + n, 10_000 + n);
    expect(health.coolingUntil('e', 20_000)).toBe(20_000 + COOL_DOWN_MS_DEFAULT);
  });

  test('uses the last answer of an endpoint unless too many endpoints answered since', () => {
    const health = createHealth();
    for (let n = 0; n <= limits.health_endpoints_max; n += 1) health.answered(`e${n}`, 5_000);
    health.silent('e0', 20_000, 1_000);
    expect(health.condition('e0', 20_000)).toBe('failing');
    health.silent('e1', 20_000, 1_000);
    expect(health.condition('e1', 20_000)).toBe('well');
  });
});

test('an endpoint that fails again after its stated wait gets the default wait, and a zero wait counts as none', () => {
  const health = createHealth();
  health.failed('e', 'overloaded', 1_000, 0);
  expect(health.coolingUntil('e', 0)).toBe(1_000);
  health.failed('e', 'overloaded', 1_000, 1_000);
  expect(health.coolingUntil('e', 1_000)).toBe(1_000 + COOL_DOWN_MS_DEFAULT);
  health.failed('e', 'overloaded', 30_000, 11_000);
  expect(health.coolingUntil('e', 11_000)).toBe(41_000);
  for (const failure of ['unavailable', 'rate_limited'] as const) {
    health.failed(failure, failure, 0, 0);
    expect(health.coolingUntil(failure, 0)).toBe(COOL_DOWN_MS_DEFAULT);
  }
});

test('a short stated wait of a rate limit is used each time', () => {
  const health = createHealth();
  for (const at of [0, 200, 400]) {
    health.failed('e', 'rate_limited', 200, at);
    expect(health.coolingUntil('e', at)).toBe(at + 200);
  }
});

test('a clock that is set back makes no wait longer', () => {
  const health = createHealth();
  const late = 10 * 3_600_000;
  health.failed('e', 'unavailable', undefined, late);
  health.failed('limited', 'rate_limited', 60_000, late);
  expect(health.coolingUntil('e', 5_000)).toBe(5_000 + COOL_DOWN_MS_DEFAULT);
  expect(health.coolingUntil('limited', 5_000)).toBe(65_000);
  expect(health.hadOutage('e', 5_000)).toBe(true);
  expect(health.hadOutage('e', 5_000 + OUTAGE_RECENT_MS)).toBe(false);
  expect(health.begin('e', 15_000)).toBe('trial');
});

test('failures since the last answer are reported with the first and the last time, and none after an answer', () => {
  const health = createHealth();
  expect(health.failures('e', 0)).toBeUndefined();
  health.failed('e', 'unavailable', undefined, 1_000);
  health.failed('e', 'timeout', undefined, 20_000);
  expect(health.failures('e', 20_000)).toEqual({ failure: 'timeout', since_ms: 1_000, last_ms: 20_000 });
  health.succeeded('e', 50_000);
  expect(health.failures('e', 50_000)).toBeUndefined();
  health.failed('e', 'timeout', undefined, 60_000);
  expect(health.failures('e', 60_000)).toMatchObject({ since_ms: 60_000 });
});
