import { afterAll, beforeAll } from 'vitest';
import { limits } from '../src/limits.ts';

type Changed = Partial<Record<keyof typeof limits, number>>;

/** Changes limits until the returned function is called, so that tests wait less. */
export function changeLimits(changed: Changed): () => void {
  const before = Object.fromEntries(Object.keys(changed).map((name) => [name, limits[name as keyof typeof limits]]));
  Object.assign(limits, changed);
  return () => void Object.assign(limits, before);
}

/** Changes limits for the tests of the file, or of the `describe` around. */
export function withLimits(changed: Changed): void {
  let restore: () => void;
  beforeAll(() => {
    restore = changeLimits(changed);
  });
  afterAll(() => restore());
}
