import { findAddresses } from './addresses.ts';
import type { Entity } from './analyzer.ts';
import { canHoldName, findNames, type NameKnowledge } from './names.ts';

const DIGIT = /[0-9０-９]/;

/** Whether a text can contain a name or an address. */
export function canHoldEntity(text: string): boolean {
  return text.length > 1 && (canHoldName(text) || (DIGIT.test(text) && /\p{L}/u.test(text)));
}

/** Finds names and addresses of people in a text, in order, without overlaps. Takes time linear in the text. */
export function findEntities(text: string, knowledge: NameKnowledge): Entity[] {
  return merged(text, [...findAddresses(text), ...findNames(text, knowledge)]);
}

/**
 * Sorts entities and removes overlaps. Overlapping entities of one kind are joined, and so are parts of an address with
 * only spaces and a comma between them. A name within an address is dropped; a name that overlaps the start of one is cut there.
 */
export function merged(text: string, entities: readonly Entity[]): Entity[] {
  const addresses = united(
    entities.filter(({ slug }) => slug === 'address'),
    (from, to) => /^[\s,]{0,3}$/.test(text.slice(from, to)),
  );
  const names = united(
    entities.filter(({ slug }) => slug === 'person-name'),
    () => false,
  );
  const all = [...addresses];
  let next = 0;
  for (const name of names) {
    while ((addresses[next]?.end ?? Number.POSITIVE_INFINITY) <= name.start) next += 1;
    const address = addresses[next];
    if (address === undefined || name.end <= address.start) all.push(name);
    else if (name.start < address.start) all.push({ ...name, end: address.start });
  }
  return all.sort((a, b) => a.start - b.start);
}

function united(entities: readonly Entity[], isJoined: (from: number, to: number) => boolean): Entity[] {
  const united: Entity[] = [];
  for (const entity of entities.toSorted((a, b) => a.start - b.start || b.end - a.end)) {
    const last = united.at(-1);
    if (last !== undefined && (entity.start < last.end || isJoined(last.end, entity.start)))
      last.end = Math.max(last.end, entity.end);
    else united.push({ ...entity });
  }
  return united;
}
