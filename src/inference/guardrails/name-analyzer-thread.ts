/** The thread that searches for names: the library's dictionary takes 30 MB and a part of a second to load. */
import { createRequire } from 'node:module';
import { parentPort } from 'node:worker_threads';
import type Compromise from 'compromise/three';
import { findEntities } from '../../guardrails/entities/entities.ts';
import type { NameKnowledge } from '../../guardrails/entities/names.ts';
import type { Analysis } from './name-analyzer.ts';

/** With `require` it is one file, which loads in half the time of the many imported ones. */
const compromise = createRequire(import.meta.url)('compromise/three') as typeof Compromise;

/** The library's dictionary: the tags of each word. */
const lexicon = new Map(
  Object.entries((compromise.model() as { one: { lexicon: Record<string, string | string[]> } }).one.lexicon),
);
const isTagged = (word: string, tags: ReadonlySet<string>) =>
  [lexicon.get(word) ?? []].flat().some((tag) => tags.has(tag));
const firstNameTags = new Set(['MaleName', 'FemaleName', 'FirstName']);
const familyTags = new Set(['LastName']);

const knowledge: NameKnowledge = {
  isFirstName: (word) => isTagged(word, firstNameTags),
  isFamily: (word) => isTagged(word, familyTags),
  saysPerson(text, name) {
    const people = compromise(text).people().out('array') as string[];
    return people.some((person) => person.includes(name));
  },
};

/** The ids of cancelled requests. */
const cancelled = new Set<number>();

async function analyze({ id, texts }: Extract<Analysis, { texts: string[] }>): Promise<void> {
  try {
    const entities = [];
    for (const text of texts) {
      entities.push(findEntities(text, knowledge));
      // Lets messages about cancellations arrive between two texts.
      await new Promise(setImmediate);
      if (cancelled.delete(id)) return;
    }
    parentPort?.postMessage({ id, entities });
  } catch {
    parentPort?.postMessage({ id });
  }
}

let last = Promise.resolve();
parentPort?.on('message', (message: Analysis) => {
  if ('texts' in message) last = last.then(() => (cancelled.delete(message.id) ? undefined : analyze(message)));
  else cancelled.add(message.id);
});
