import { expect, test } from 'vitest';
import { type Source, withSources } from './sources.ts';

interface Said {
  word: string;
}
type Course = AsyncGenerator<Said | Source<Said>, void, undefined>;

function sourceOf(...words: string[]): Source<Said> {
  return async () => {
    const word = words.shift();
    if (word?.startsWith('throw ')) throw new Error(word.slice(6));
    return word === undefined ? undefined : { word };
  };
}

async function wordsOf(course: Course): Promise<string[]> {
  const words: string[] = [];
  for await (const { word } of withSources(course)) words.push(word);
  return words;
}

test('a source stands for its values, in their place', async () => {
  async function* course(): Course {
    yield { word: 'a' };
    yield sourceOf('b', 'c');
    yield sourceOf();
    yield sourceOf('d');
    yield { word: 'e' };
  }
  expect(await wordsOf(course())).toEqual(['a', 'b', 'c', 'd', 'e']);
});

test('what a source throws is thrown where the generator named it', async () => {
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

test('what the reader throws goes to the generator, whose source is read no more', async () => {
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

test('who reads no further ends the generator, after the step under way', async () => {
  const told: string[] = [];
  const slow = Promise.withResolvers<Said | undefined>();
  async function* course(): Course {
    try {
      yield async () => {
        const said = await slow.promise;
        told.push('read');
        return said;
      };
    } finally {
      told.push('closed');
    }
  }
  const events = withSources(course());
  const step = events.next();
  const end = events.return();
  await new Promise((resolve) => setImmediate(resolve));
  expect(told).toEqual([]);
  slow.resolve({ word: 'a' });
  expect(await step).toEqual({ done: false, value: { word: 'a' } });
  expect(await end).toEqual({ done: true, value: undefined });
  expect(told).toEqual(['read', 'closed']);
});
