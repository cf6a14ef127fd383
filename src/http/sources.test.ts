import { expect, test } from 'vitest';
import { type Source, withSources } from './sources.ts';

interface TextEvent {
  word: string;
}
type Course = AsyncGenerator<TextEvent | Source<TextEvent>, void, undefined>;

/** `wait`: the next word must be awaited; `not yet`: the awaited part is no whole word yet. */
function sourceOf(...words: string[]): Source<TextEvent> {
  return {
    get ended() {
      return words.length === 0;
    },
    ready() {
      if (words[0] !== 'wait') return undefined;
      words.shift();
      return Promise.resolve();
    },
    read() {
      const word = words.shift();
      if (word?.startsWith('throw ')) throw new Error(word.slice(6));
      return word === undefined || word === 'not yet' ? undefined : { word };
    },
  };
}

async function wordsOf(course: Course): Promise<string[]> {
  const words: string[] = [];
  for await (const { word } of withSources(course)) words.push(word);
  return words;
}

test('a source is replaced by its values', async () => {
  async function* course(): Course {
    yield { word: 'a' };
    yield sourceOf('b', 'wait', 'c');
    yield sourceOf();
    yield sourceOf('wait', 'not yet', 'wait', 'd', 'not yet');
    yield { word: 'e' };
  }
  expect(await wordsOf(course())).toEqual(['a', 'b', 'c', 'd', 'e']);
});

test('an error of a source is thrown where the generator yielded it', async () => {
  async function* course(): Course {
    try {
      yield sourceOf('a', 'throw broken', 'never');
    } catch (error) {
      yield { word: (error as Error).message };
      yield sourceOf('b');
    }
  }
  expect(await wordsOf(course())).toEqual(['a', 'broken', 'b']);
  async function* unaware(): Course {
    yield sourceOf('throw broken');
  }
  await expect(wordsOf(unaware())).rejects.toThrow('broken');
});

test('an error of the reader is thrown in the generator, and its source is not read further', async () => {
  async function* course(): Course {
    try {
      yield sourceOf('a', 'never');
    } catch (error) {
      yield { word: (error as Error).message };
    }
  }
  const events = withSources(course());
  await events.next();
  expect(await events.throw(new Error('no text for it'))).toEqual({ done: false, value: { word: 'no text for it' } });
  expect(await events.next()).toEqual({ done: true, value: undefined });
});

test('a reader that stops ends the generator, after the current step', async () => {
  const steps: string[] = [];
  const slow = Promise.withResolvers<void>();
  async function* course(): Course {
    try {
      yield {
        ended: false,
        ready: () => slow.promise,
        read() {
          steps.push('read');
          return { word: 'a' };
        },
      };
    } finally {
      steps.push('closed');
    }
  }
  const events = withSources(course());
  const step = events.next();
  const end = events.return();
  await new Promise((resolve) => setImmediate(resolve));
  expect(steps).toEqual([]);
  slow.resolve();
  expect(await step).toEqual({ done: false, value: { word: 'a' } });
  expect(await end).toEqual({ done: true, value: undefined });
  expect(steps).toEqual(['read', 'closed']);
});

test('a reader waits only when a source waits', async () => {
  const wait = Promise.withResolvers<void>();
  let isThere = false;
  async function* course(): Course {
    yield {
      ended: false,
      ready: () => (isThere ? undefined : wait.promise),
      read: () => ({ word: 'a' }),
    };
  }
  const events = withSources(course());
  const first = events.ready();
  wait.resolve();
  await first;
  expect(events.read()).toEqual({ word: 'a' });
  expect(events.ready()).toBe(wait.promise);
  isThere = true;
  expect(events.ready()).toBe(undefined);
  expect(events.read()).toEqual({ word: 'a' });
});
