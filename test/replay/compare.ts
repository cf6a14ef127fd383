/** The differences of two replay files in words: by place over all exchanges, and exchange by exchange. */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';

export interface Comparison {
  /** Names of exchanges that only one of the files has. */
  missing: string[];
  added: string[];
  differing: { name: string; differences: Difference[] }[];
  equal: number;
}

interface Difference {
  /** `answer.body[3].usage.cost`; the number of an entry is its index in the list. */
  place: string;
  before: JsonValue | undefined;
  after: JsonValue | undefined;
}

const SHOWN_CHARS = 160;
const EXAMPLES = 3;

async function readLines(file: string): Promise<Map<string, string>> {
  const lines = new Map<string, string>();
  for await (const line of createInterface({ input: createReadStream(file) })) {
    // Each line begins with its hash and its name.
    const name = /^\{"hash":"\w+","name":("(?:[^"\\]|\\.)*")/.exec(line)?.[1];
    if (name === undefined) throw new Error(`${file} is not a file of a replay: ${line.slice(0, 80)}`);
    lines.set(JSON.parse(name) as string, line);
  }
  return lines;
}

/** Bodies by their meaning: JSON as its value, an event stream as a list of its events, any other text by its lines. */
function parsedBody(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    // The text is not one JSON value.
  }
  if (!/^(?:data|event|:)/.test(text)) return text.split('\n');
  return text.split('\n\n').map((event): JsonValue => {
    const [, name, data] = /^(?:event: (.*)\n)?data: (.*)$/.exec(event) ?? [];
    if (data === undefined) return event;
    try {
      const value = JSON.parse(data) as JsonValue;
      return name === undefined ? value : { [name]: value };
    } catch {
      return event;
    }
  });
}

function parsedLine(line: string): JsonValue {
  const { hash: _, name: __, ...observed } = JSON.parse(line) as JsonObject;
  const answer = observed['answer'] as JsonObject;
  const sent = observed['sent'] as JsonObject[];
  const withBody = (one: JsonObject): JsonObject => ({ ...one, body: parsedBody(String(one['body'])) });
  return { ...observed, answer: withBody(answer), sent: sent.map(withBody) };
}

const isList = (value: JsonValue | undefined): value is JsonValue[] => Array.isArray(value);
const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !isList(value);

function differencesOf(before: JsonValue | undefined, after: JsonValue | undefined, place: string): Difference[] {
  if (isList(before) && isList(after)) {
    const length = Math.max(before.length, after.length);
    return Array.from({ length }, (_, i) => differencesOf(before[i], after[i], `${place}[${i}]`)).flat();
  }
  if (isObject(before) && isObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    const differences = names.flatMap((name) => differencesOf(before[name], after[name], `${place}.${name}`));
    const isReordered = differences.length === 0 && JSON.stringify(before) !== JSON.stringify(after);
    // Bytes count: the same members in another order are another answer.
    const orders = [before, after].map((one) => Object.keys(one).join(', ')) as [string, string];
    return isReordered ? [{ place: `${place} (order)`, before: orders[0], after: orders[1] }] : differences;
  }
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ place, before, after }];
}

/** Compares two files by the names of their exchanges. */
export async function compare(beforeFile: string, afterFile: string): Promise<Comparison> {
  const [before, after] = await Promise.all([readLines(beforeFile), readLines(afterFile)]);
  const comparison: Comparison = { missing: [], added: [], differing: [], equal: 0 };
  for (const [name, line] of before) {
    const other = after.get(name);
    if (other === undefined) comparison.missing.push(name);
    else if (other === line) comparison.equal += 1;
    else {
      const differences = differencesOf(parsedLine(line), parsedLine(other), '').map((one) => ({
        ...one,
        place: one.place.replace(/^\./, ''),
      }));
      // Bytes with the same meaning, such as other white space.
      comparison.differing.push({ name, differences });
    }
  }
  for (const name of after.keys()) if (!before.has(name)) comparison.added.push(name);
  return comparison;
}

function shown(value: JsonValue | undefined): string {
  const text = value === undefined ? 'absent' : JSON.stringify(value);
  return text.length <= SHOWN_CHARS ? text : `${text.slice(0, SHOWN_CHARS)}… (${text.length} characters)`;
}

/** The comparison as lines of text. `most`: this number of exchanges is shown one by one. */
export function describeComparison(comparison: Comparison, most: number): string {
  const { missing, added, differing, equal } = comparison;
  const lines = [
    `${equal} exchanges are equal, ${differing.length} differ, ${missing.length} are missing, ${added.length} are new.`,
  ];
  for (const [what, names] of [
    ['missing', missing],
    ['new', added],
  ] as const) {
    for (const name of names.slice(0, most)) lines.push(`  ${what}: ${name}`);
    if (names.length > most) lines.push(`  … and ${names.length - most} more`);
  }
  if (differing.length === 0) return `${lines.join('\n')}\n`;

  const places = new Map<string, { count: number; examples: string[] }>();
  for (const { name, differences } of differing) {
    const own = differences.length > 0 ? differences : [{ place: 'bytes alone', before: undefined, after: undefined }];
    for (const { place, before, after } of own) {
      const general = place.replace(/\[\d+\]/g, '[]');
      const known = places.get(general) ?? { count: 0, examples: [] };
      places.set(general, known);
      known.count += 1;
      if (known.examples.length < EXAMPLES) known.examples.push(`${name}: ${shown(before)} -> ${shown(after)}`);
    }
  }
  lines.push('', 'By place:');
  for (const [place, { count, examples }] of [...places].sort(([, a], [, b]) => b.count - a.count)) {
    lines.push(`${String(count).padStart(6)}  ${place}`, ...examples.map((example) => `          ${example}`));
  }
  lines.push('', 'By exchange:');
  for (const { name, differences } of differing.slice(0, most)) {
    lines.push(name);
    for (const { place, before, after } of differences.slice(0, 10 * EXAMPLES)) {
      lines.push(`  ${place}`, `    - ${shown(before)}`, `    + ${shown(after)}`);
    }
  }
  if (differing.length > most) lines.push(`… and ${differing.length - most} more (--show ${differing.length})`);
  return `${lines.join('\n')}\n`;
}
