import { limits } from '../../limits.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asArray, asObject } from '../shared/json-shape.ts';

/** Array items that are filled in if the arguments of a call name a later item first. */
const ARGUMENT_PADDING_MAX = 100_000;

/** The arguments of a call that are streamed value by value (https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling#streaming-fc). */
export interface PartialArguments {
  /** False if a piece is invalid. */
  add(pieces: JsonValue | undefined): boolean;
  text(): string;
}

export function createPartialArguments(): PartialArguments {
  const root = emptyObject();
  /** The entries filled in before array positions that were sent out of order. */
  let padded = 0;

  function write(at: JsonObject | JsonValue[], step: string | number, value: JsonValue): boolean {
    if (!Array.isArray(at)) {
      at[step] = value;
      return true;
    }
    if (typeof step !== 'number') return false;
    padded += Math.max(0, step - at.length);
    if (padded > ARGUMENT_PADDING_MAX) return false;
    while (at.length < step) at.push(null);
    at[step] = value;
    return true;
  }

  function put(piece: JsonObject): boolean {
    const path = parsePath(piece['jsonPath']);
    if (path === undefined || path.length > limits.answer_levels_max) return false;
    let at: JsonObject | JsonValue[] = root;
    for (const [i, step] of path.slice(0, -1).entries()) {
      const inside: JsonValue | undefined = read(at, step);
      const next: JsonValue[] | JsonObject = isContainer(inside)
        ? inside
        : typeof path[i + 1] === 'number'
          ? []
          : emptyObject();
      if (next !== inside && !write(at, step, next)) return false;
      at = next;
    }
    const last = path.at(-1)!;
    const { stringValue, numberValue, boolValue } = piece;
    if (typeof stringValue !== 'string') return write(at, last, numberValue ?? boolValue ?? null);
    const previous = read(at, last);
    return write(at, last, typeof previous === 'string' ? previous + stringValue : stringValue);
  }

  return {
    add: (pieces) => asArray(pieces).every((piece) => put(asObject(piece) ?? {})),
    text: () => JSON.stringify(root),
  };
}

/** An object without a prototype: member names have no special meaning. */
function emptyObject(): JsonObject {
  return Object.create(null) as JsonObject;
}

function isContainer(value: JsonValue | undefined): value is JsonObject | JsonValue[] {
  return typeof value === 'object' && value !== null;
}

function read(at: JsonObject | JsonValue[], step: string | number): JsonValue | undefined {
  if (Array.isArray(at)) return typeof step === 'number' ? at[step] : undefined;
  return at[step];
}

const STEP = /\.([^.[\]]+)|\[(\d+)\]|\[(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\]/y;

/** A path of RFC 9535 that names one location, `$.a[0]['b c']`; undefined for others. */
function parsePath(value: JsonValue | undefined): (string | number)[] | undefined {
  if (typeof value !== 'string' || !value.startsWith('$')) return undefined;
  const path: (string | number)[] = [];
  STEP.lastIndex = 1;
  for (let at = 1; at < value.length; at = STEP.lastIndex) {
    const match = STEP.exec(value);
    if (match === null) return undefined;
    const [, name, index, single, double] = match;
    path.push(index === undefined ? (name ?? (single ?? double)!.replace(/\\(.)/g, '$1')) : Number(index));
  }
  return path.length === 0 ? undefined : path;
}
