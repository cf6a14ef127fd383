import { createRequire } from 'node:module';
import type { TSchema } from 'typebox';
import { Errors } from 'typebox/schema';
import { Settings } from 'typebox/system';
import type { Document, LineCounter, Node } from 'yaml';
import { limits } from '../limits.ts';
import { ConfigError, didYouMean } from './config-error.ts';
import { ConfigFile, fileSettings } from './file-schema.ts';
import { allSettings } from './settings/declare.ts';

const load = createRequire(import.meta.url);
/** Loaded only if there is a file: many gateways have none. */
const yaml = () => load('yaml') as typeof import('yaml');

/** The faults of one file that are reported. TypeBox's default is 8. */
const FAULTS_MAX = 100;

export type Path = readonly (string | number)[];

/** A file that fits the schema, and the errors for a place in it. */
export interface ReadFile {
  value: ConfigFile;
  /** An error that names the file, the line if it is known, the path and the expectation. */
  wrong(path: Path, expectation: string): ConfigError;
}

/** `models.acme/fast-1.endpoints[0].pricing.prompt` */
function pathText(path: Path): string {
  return path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`))
    .join('')
    .replace(/^\./, '');
}

/**
 * Reads the text of `gateway.yaml`; throws a `ConfigError` with everything in it that does not fit the schema. `checked` is its
 * content, if it was read before: it is then parsed only to find the line of a place.
 */
export function readConfigFile(name: string, text: string, checked?: unknown): ReadFile {
  if (Buffer.byteLength(text) > limits.config_bytes_max) {
    throw new ConfigError(`${name} is larger than ${limits.config_bytes_max} bytes`);
  }
  let parsed = checked === undefined ? parse(name, text) : undefined;
  const wrong = (path: Path, expectation: string) => {
    parsed ??= parse(name, text);
    const { document, counter } = parsed;
    let line = '';
    for (let length = path.length; length > 0 && line === ''; length -= 1) {
      const node = nodeAt(document.contents, path.slice(0, length));
      if (node?.range) line = `, line ${counter.linePos(node.range[0]).line}`;
    }
    const place = path.length === 0 ? 'the file' : pathText(path);
    return new ConfigError(`${name}${line}: ${place} ${expectation}`);
  };
  if (parsed === undefined) return { value: checked as ConfigFile, wrong };
  const value = unfolded(name, parsed.document);
  check(value, wrong);
  return { value: value as ConfigFile, wrong };
}

interface Parsed {
  document: Document;
  counter: LineCounter;
}

function parse(name: string, text: string): Parsed {
  const { LineCounter, parseDocument } = yaml();
  const counter = new LineCounter();
  // Pretty errors quote the line, which may hold a key.
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false });
  if (document.errors.length === 0) return { document, counter };
  throw new ConfigError(
    document.errors.map(({ pos, code }) => {
      const { line } = counter.linePos(pos[0]);
      return `${name}, line ${line}: this is not valid YAML (${code.toLowerCase().replaceAll('_', ' ')})`;
    }),
  );
}

function unfolded(name: string, document: Document): unknown {
  try {
    return document.toJS({ maxAliasCount: limits.config_aliases_max }) ?? {};
  } catch (cause) {
    throw new ConfigError(
      cause instanceof Error && /unresolved alias/i.test(cause.message)
        ? `${name}: an alias (*name) refers to an anchor (&name) that is not above it`
        : `${name}: its aliases expand to more than the gateway accepts`,
    );
  }
}

/** The node that a message refers to: the key of an entry, or the item of a list. */
function nodeAt(root: Node | null, path: Path): Node | undefined {
  const { isMap, isNode, isScalar, isSeq } = yaml();
  let here: unknown = root;
  for (const [index, step] of path.entries()) {
    if (isMap(here)) {
      const entry = here.items.find(({ key }) => isScalar(key) && String(key.value) === String(step));
      if (index === path.length - 1) return isNode(entry?.key) ? entry.key : undefined;
      here = entry?.value;
    } else {
      here = isSeq(here) ? here.items[Number(step)] : undefined;
    }
  }
  return isNode(here) ? here : undefined;
}

/** Throws for everything in the file that does not fit the schema. */
function check(value: unknown, wrong: ReadFile['wrong']): void {
  const { maxErrors } = Settings.Get();
  Settings.Set({ maxErrors: FAULTS_MAX });
  const [, faults] = Errors(ConfigFile, value);
  Settings.Set({ maxErrors });
  if (faults.length === 0) return;
  // Of a value that fits no schema of a union, only the first fault is reported: the others belong to schemas that were probably
  // not meant.
  const unions = new Set(faults.filter(({ keyword }) => keyword === 'anyOf').map(({ instancePath }) => instancePath));
  const seen = new Set<string>();
  const isFirst = (instancePath: string): boolean => {
    const union = [...unions].find((path) => instancePath === path || instancePath.startsWith(`${path}/`));
    if (union === undefined) return true;
    return !seen.has(union) && seen.add(union) !== undefined;
  };
  const errors = faults
    // An unknown setting is reported twice: as one, and as a value of the schema `false`.
    .filter(({ keyword, instancePath }) => keyword !== 'boolean' && isFirst(instancePath))
    .flatMap((fault) => errorsOf(fault, value, wrong));
  throw new ConfigError(errors.flatMap((error) => error.faults));
}

type Fault = ReturnType<typeof Errors>[1][number];

function errorsOf(fault: Fault, value: unknown, wrong: ReadFile['wrong']): ConfigError[] {
  const path = steps(fault.instancePath, value);
  if (fault.keyword === 'additionalProperties') {
    const known = Object.keys((schemaAt(ConfigFile, path) as { properties?: object } | undefined)?.properties ?? {});
    return fault.params.additionalProperties.map((key) =>
      wrong([...path, key], `is not a known setting${didYouMean(key, known) || `; known are ${known.join(', ')}`}`),
    );
  }
  if (fault.keyword === 'required') return [wrong(path, `must have ${fault.params.requiredProperties.join(' and ')}`)];
  return [wrong(path, `must be ${describedAt(ConfigFile, path) ?? fault.message}${quotedValue(value, path)}`)];
}

/** The value at this place, unless it may be a secret. */
function quotedValue(value: unknown, path: Path): string {
  let here = value;
  for (const step of path) here = (here as Record<string | number, unknown>)[step];
  const names = new Set(['extra_body']);
  for (const { path: name, declared } of allSettings(fileSettings)) {
    if (declared.isSecret) names.add(name.slice(name.lastIndexOf('.') + 1));
  }
  const secret = path.some((step) => names.has(String(step)));
  if (here === null) return ', but it is empty';
  if (Array.isArray(here)) return `, not ${here.length === 0 ? 'an empty' : 'a'} list`;
  if (typeof here === 'object') return ', not an object';
  return secret || String(here).length > 60 ? '' : `, not ${JSON.stringify(here)}`;
}

/** The steps of a JSON pointer. The value decides whether a step is an index or a name. */
function steps(pointer: string, value: unknown): (string | number)[] {
  let here = value;
  return pointer
    .split('/')
    .slice(1)
    .map((raw) => {
      const step = raw.replaceAll('~1', '/').replaceAll('~0', '~');
      const key = Array.isArray(here) ? Number(step) : step;
      here = (here as Record<string | number, unknown> | undefined)?.[key];
      return key;
    });
}

type Walkable = TSchema & {
  description?: string;
  properties?: Record<string, TSchema>;
  patternProperties?: Record<string, TSchema>;
  items?: TSchema;
};

function schemaAt(schema: TSchema | undefined, path: Path): Walkable | undefined {
  let here = schema as Walkable | undefined;
  for (const step of path) {
    const next =
      typeof step === 'number'
        ? here?.items
        : (here?.properties?.[step] ?? Object.values(here?.patternProperties ?? {})[0]);
    here = next as Walkable | undefined;
  }
  return here;
}

/** The description nearest to a place, from the place outwards. */
function describedAt(schema: TSchema, path: Path): string | undefined {
  return schemaAt(schema, path)?.description;
}
