import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';

/** One place at which two values differ: `<path> added`, `removed` or `changed`, with both values. */
export interface Difference {
  place: string;
  before: JsonValue | undefined;
  after: JsonValue | undefined;
}

/** An intended difference: where it may occur, and why. */
export interface Allowed {
  place: RegExp;
  reason: string;
  /** Whether the values match the reason. */
  holds?: (before: JsonValue | undefined, after: JsonValue | undefined) => boolean;
}

/** The places at which two values differ, each as deep as possible. */
export function differences(before: JsonValue | undefined, after: JsonValue | undefined, path = ''): Difference[] {
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    return before.flatMap((value, i) => differences(value, after[i], `${path}[${i}]`));
  }
  const areObjects = [before, after].every((side) => typeof side === 'object' && side !== null && !Array.isArray(side));
  if (areObjects) {
    const [one, other] = [before as JsonObject, after as JsonObject];
    return [...new Set([...Object.keys(one), ...Object.keys(other)])].flatMap((key) => {
      const place = `${path}.${key}`;
      if (!(key in other)) return [{ place: `${place} removed`, before: one[key], after: undefined }];
      if (!(key in one)) return [{ place: `${place} added`, before: undefined, after: other[key] }];
      return differences(one[key], other[key], place);
    });
  }
  return Object.is(before, after) ? [] : [{ place: `${path} changed`, before, after }];
}

/** The reason that allows a difference; undefined if there is none. */
export function reasonFor({ place, before, after }: Difference, list: readonly Allowed[]): string | undefined {
  return list.find((allowed) => allowed.place.test(place) && (allowed.holds?.(before, after) ?? true))?.reason;
}

const isNull = (before: JsonValue | undefined) => before === null;
const isEmptyList = (before: JsonValue | undefined) => Array.isArray(before) && before.length === 0;
const isJoined = (before: JsonValue | undefined, after: JsonValue | undefined) =>
  Array.isArray(before) &&
  before.every((part) => (part as JsonObject)['type'] === 'text') &&
  before.map((part) => (part as JsonObject)['text']).join('') === after;

/** The changes of the chat dialect in a request for a plain upstream of its wire; any other change is a fault. */
export const CHANGED_BY_DIALECT: readonly Allowed[] = [
  {
    place: /^\.stream_options added$/,
    reason: 'usage is always requested',
    holds: (_, after) => JSON.stringify(after) === '{"include_usage":true}',
  },
  { place: /^\.tools removed$/, reason: 'an empty list of tools is an error on several servers', holds: isEmptyList },
  { place: /^\.messages\[\d+\]\.\w+ removed$/, reason: 'null members of messages are omitted', holds: isNull },
  {
    place: /^\.messages\[\d+\]\.content\[\d+\]\.\w+ removed$/,
    reason: 'null members of parts are omitted',
    holds: isNull,
  },
  { place: /^\.messages\[\d+\]\.tool_calls\[\d+\]\.index removed$/, reason: 'calls in requests have no index' },
  { place: /^\.messages\[\d+\]\.reasoning(?:_content)? removed$/, reason: 'reasoning is sent back only by quirk' },
  {
    place: /^\.messages\[\d+\]\.content changed$/,
    reason: 'an empty content beside calls is null',
    holds: (before, after) => isEmptyList(before) && after === null,
  },
  { place: /^\.messages\[\d+\]\.content changed$/, reason: 'the text of an assistant is a string', holds: isJoined },
];
