import type { FastifySchemaCompiler } from 'fastify';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/schema';
import { limits } from '../limits.ts';
import { append } from '../schemas/append.ts';
import { lookupTable } from '../schemas/lookup-table.ts';

/** Reported violations of one body. */
export const VIOLATIONS_MAX = 20;
/** Values of a body that are checked to describe its violations. Violations in later values are not described. */
const EXPLAINED_VALUES_MAX = 50_000;

/** A violation of a schema: `path` is the field as a client would write it, `rule` completes the sentence. */
export interface Violation {
  path: string;
  rule: string;
}

interface SchemaNode {
  type?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: SchemaNode[];
  properties?: Record<string, SchemaNode>;
  required?: string[];
  additionalProperties?: boolean | SchemaNode;
  patternProperties?: Record<string, SchemaNode>;
  items?: SchemaNode;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  maxProperties?: number;
  propertyNames?: { maxLength?: number };
  pattern?: string;
  format?: string;
  not?: SchemaNode;
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value;
}

function matchesType(type: string, value: unknown): boolean {
  if (type === 'integer') return Number.isInteger(value);
  // A number in JSON may be too large for a double: 1e999.
  if (type === 'number') return Number.isFinite(value);
  return kindOf(value) === type;
}

/** The values that a constant, an enumeration or a union of constants allows; undefined for any other schema. */
function constantsOf(schema: SchemaNode): unknown[] | undefined {
  if (schema.const !== undefined) return [schema.const];
  if (schema.enum !== undefined) return schema.enum;
  const each = schema.anyOf?.map(constantsOf);
  return each?.every((values) => values !== undefined) ? each.flat() : undefined;
}

/** Nested unions as one list of branches. */
function flatten(branches: SchemaNode[]): SchemaNode[] {
  return branches.flatMap((branch) =>
    branch.anyOf && constantsOf(branch) === undefined ? flatten(branch.anyOf) : [branch],
  );
}

/** The field that discriminates an object schema (`type`, `role`), and its values. A `type` may also be absent. */
function discriminatorOf(schema: SchemaNode): { name: string; values: unknown[] } | undefined {
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const values = constantsOf(property);
    if (values === undefined) continue;
    if (schema.required?.includes(name)) return { name, values };
    if (name === 'type') return { name, values: [...values, undefined] };
  }
  return undefined;
}

/** The branch of a union that the discriminator of an object selects. Discriminators exclude each other, so no other branch can accept it. */
function discriminatedBranch(branches: SchemaNode[], value: unknown): SchemaNode | undefined {
  if (kindOf(value) !== 'object') return undefined;
  return branches.find((branch) => {
    const kind = discriminatorOf(branch);
    return kind?.values.includes((value as Record<string, unknown>)[kind.name]);
  });
}

/**
 * The branch of a union that the sender most likely meant, if no discriminator selects one: the only one of the same JSON type. Among several
 * lists, the one whose items have the type of the first item, or else one of any of these items.
 */
function intendedBranch(branches: SchemaNode[], value: unknown): SchemaNode | undefined {
  const sameType = branches.filter((branch) => branch.type !== undefined && matchesType(branch.type, value));
  if (sameType.length < 2 || !Array.isArray(value)) return sameType.length === 1 ? sameType[0] : undefined;
  const kind = kindOf(value[0]);
  const matching = sameType.filter(({ items }) => (items?.type === 'integer' ? 'number' : items?.type) === kind);
  if (value.length === 0 || matching.length === 1) return matching[0] ?? sameType[0];
  return matching.length > 1
    ? undefined
    : { type: 'array', items: { anyOf: sameType.map(({ items }) => items ?? {}) } };
}

/** The amount of work done: each value that is compared with a schema in words counts as one. */
export interface ExplainingWork {
  values: number;
}

/** A longer list is checked by its compiled schema, and only the first item that fails is explained. */
const EXPLAINED_ITEMS_MAX = 16;

const checks = new WeakMap<SchemaNode, ReturnType<typeof Compile>>();

function compiledOf(schema: SchemaNode): ReturnType<typeof Compile> {
  let compiled = checks.get(schema);
  if (compiled === undefined) {
    compiled = Compile(schema as TSchema);
    checks.set(schema, compiled);
  }
  return compiled;
}

/** Whether a value fits a schema. Uses the compiled schema, which is a hundred times faster than explaining. */
function fits(schema: SchemaNode, value: unknown): boolean {
  return compiledOf(schema).Check(value);
}

function accepts(schema: SchemaNode, value: unknown, work: ExplainingWork): boolean {
  return typeof value === 'object' && value !== null
    ? fits(schema, value)
    : explain(schema, value, '', work).length === 0;
}

function describeNode(schema: SchemaNode): string {
  const constants = constantsOf(schema);
  if (constants) return quoted(constants);
  if (schema.anyOf) return [...new Set(flatten(schema.anyOf).map(describeNode))].join(' or ');
  if (schema.type === 'array') return 'an array';
  if (schema.type === 'object') return 'an object';
  if (schema.type === 'integer') return 'an integer';
  return schema.type === undefined ? 'any value' : schema.type === 'null' ? 'null' : `a ${schema.type}`;
}

function quoted(values: unknown[]): string {
  return [...new Set(values.flatMap((value) => (value === undefined ? [] : JSON.stringify(value))))].join(', ');
}

function explainUnion(nested: SchemaNode[], value: unknown, path: string, work: ExplainingWork): Violation[] {
  const branches = flatten(nested);
  const selected = discriminatedBranch(branches, value);
  if (selected) return explain(selected, value, path, work);
  if (branches.some((branch) => accepts(branch, value, work))) return [];
  const branch = intendedBranch(branches, value);
  if (branch && constantsOf(branch) === undefined) return explain(branch, value, path, work);
  if (kindOf(value) === 'object') {
    const kinds = branches.filter(({ type }) => type === 'object').map(discriminatorOf);
    const name = kinds[0]?.name;
    if (name !== undefined && kinds.every((kind) => kind?.name === name)) {
      return [
        { path: join(path, name), rule: `must be one of ${quoted(kinds.flatMap((kind) => kind?.values ?? []))}` },
      ];
    }
  }
  const constants = branches.flatMap((one) => constantsOf(one) ?? []);
  if (constants.length > 0 && (constants.length === branches.length || typeof value === 'string')) {
    return [{ path, rule: `must be one of ${quoted(constants)}` }];
  }
  return [{ path, rule: `must be ${describeNode({ anyOf: branches })}` }];
}

function join(path: string, name: string): string {
  const shown = name.slice(0, limits.error_field_chars_max);
  if (!/^[A-Za-z_][\w-]*$/.test(shown)) return `${path}[${JSON.stringify(shown)}]`;
  return path === '' ? shown : `${path}.${shown}`;
}

function explainNumber(schema: SchemaNode, value: number, path: string): Violation[] {
  if (schema.minimum !== undefined && value < schema.minimum)
    return [{ path, rule: `must be at least ${schema.minimum}` }];
  if (schema.exclusiveMinimum !== undefined && value <= schema.exclusiveMinimum)
    return [{ path, rule: `must be greater than ${schema.exclusiveMinimum}` }];
  if (schema.maximum !== undefined && value > schema.maximum)
    return [{ path, rule: `must be at most ${schema.maximum}` }];
  if (schema.exclusiveMaximum !== undefined && value >= schema.exclusiveMaximum)
    return [{ path, rule: `must be less than ${schema.exclusiveMaximum}` }];
  return [];
}

function explainString(schema: SchemaNode, value: string, path: string): Violation[] {
  if (schema.minLength !== undefined && value.length < schema.minLength)
    return [
      {
        path,
        rule: schema.minLength === 1 ? 'must not be empty' : `must have at least ${schema.minLength} characters`,
      },
    ];
  if (schema.maxLength !== undefined && value.length > schema.maxLength)
    return [{ path, rule: `must have at most ${schema.maxLength} characters` }];
  if (schema.pattern !== undefined && !new RegExp(schema.pattern).test(value))
    return [{ path, rule: `must match pattern "${schema.pattern}"` }];
  return [];
}

function explainObject(
  schema: SchemaNode,
  value: Record<string, unknown>,
  path: string,
  work: ExplainingWork,
): Violation[] {
  const { maxProperties = Number.POSITIVE_INFINITY, additionalProperties } = schema;
  const nameCharsMax = schema.propertyNames?.maxLength ?? Number.POSITIVE_INFINITY;
  if (maxProperties !== Number.POSITIVE_INFINITY && Object.keys(value).length > maxProperties)
    return [{ path, rule: `must have at most ${maxProperties} entries` }];
  const violations: Violation[] = [];
  for (const name of schema.required ?? []) {
    if (value[name] === undefined) violations.push({ path: join(path, name), rule: 'is required' });
  }
  const patterns = Object.entries(schema.patternProperties ?? {}).map(
    ([pattern, property]) => [new RegExp(pattern), property] as const,
  );
  for (const name in value) {
    if (violations.length >= VIOLATIONS_MAX) return violations;
    const child = value[name];
    if (child === undefined) continue;
    if (name.length > nameCharsMax) {
      violations.push({ path: join(path, name), rule: `must have a name of at most ${nameCharsMax} characters` });
    }
    const property = propertyOf(schema, name) ?? patterns.find(([pattern]) => pattern.test(name))?.[1];
    if (property) append(violations, explain(property, child, join(path, name), work));
    else if (additionalProperties === false) violations.push({ path: join(path, name), rule: 'is not a known field' });
    else if (typeof additionalProperties === 'object')
      append(violations, explain(additionalProperties, child, join(path, name), work));
  }
  return violations;
}

/** An own property of the schema, so not `toString`. */
function propertyOf({ properties = {} }: SchemaNode, name: string): SchemaNode | undefined {
  return Object.hasOwn(properties, name) ? properties[name] : undefined;
}

function explainArray(schema: SchemaNode, value: unknown[], path: string, work: ExplainingWork): Violation[] {
  if (schema.minItems !== undefined && value.length < schema.minItems)
    return [{ path, rule: `must have at least ${schema.minItems} item${schema.minItems === 1 ? '' : 's'}` }];
  if (schema.maxItems !== undefined && value.length > schema.maxItems)
    return [{ path, rule: `must have at most ${schema.maxItems} items` }];
  const items = schema.items;
  if (!items) return [];
  if (value.length > EXPLAINED_ITEMS_MAX) {
    const index = value.findIndex((item) => !fits(items, item));
    return index === -1 ? [] : explain(items, value[index], `${path}[${index}]`, work);
  }
  for (const [index, item] of value.entries()) {
    const violations = explain(items, item, `${path}[${index}]`, work);
    if (violations.length > 0) return violations;
  }
  return [];
}

/**
 * The violations of `schema` by `value`, field by field; empty if there are none. This is slow: call it only after a check failed. For a value
 * with very many violations, only the first are returned.
 */
export function explain(
  schema: SchemaNode,
  value: unknown,
  path: string,
  work: ExplainingWork = { values: 0 },
): Violation[] {
  work.values += 1;
  if (work.values > EXPLAINED_VALUES_MAX) return [];
  if (schema.anyOf) return explainUnion(schema.anyOf, value, path, work);
  if (schema.const !== undefined)
    return value === schema.const ? [] : [{ path, rule: `must be ${JSON.stringify(schema.const)}` }];
  if (schema.enum) {
    return schema.enum.includes(value) ? [] : [{ path, rule: `must be one of ${quoted(schema.enum)}` }];
  }
  if (schema.type !== undefined && !matchesType(schema.type, value))
    return [{ path, rule: `must be ${describeNode(schema)}` }];
  if (schema.not && accepts(schema.not, value, work))
    return [{ path, rule: `must not be ${describeNode(schema.not)}` }];
  switch (kindOf(value)) {
    case 'number':
      return explainNumber(schema, value as number, path);
    case 'string':
      return explainString(schema, value as string, path);
    case 'object':
      return explainObject(schema, value as Record<string, unknown>, path, work);
    case 'array':
      return explainArray(schema, value as unknown[], path, work);
    default:
      return [];
  }
}

/** A request that violates its schema. The error envelope turns it into a 400 that names the field and the rule. */
export class ValidationError extends Error {
  override readonly name = 'ValidationError';
  readonly violations: Violation[];

  constructor(part: string, violations: Violation[]) {
    const [first] = violations;
    const more = violations.length > 1 ? ` (and ${violations.length - 1} more)` : '';
    const field = first && first.path !== '' ? first.path : `the request ${part}`;
    super(`${field} ${first?.rule ?? 'is not valid'}${more}`);
    this.violations = violations;
  }
}

/** The notation of numbers in a query string or a path, by type: decimal digits only. */
const NOTATIONS: Readonly<Record<string, RegExp>> = lookupTable({ integer: /^-?\d+$/, number: /^-?\d+(?:\.\d+)?$/ });

/** Converts the numbers of a query string or a path, which are text there. */
function readNumbers(schema: SchemaNode, input: unknown): unknown {
  if (kindOf(input) !== 'object') return input;
  const read = Object.entries(input as Record<string, unknown>).map(([name, value]) => {
    const notation = NOTATIONS[propertyOf(schema, name)?.type ?? ''];
    return [name, typeof value === 'string' && notation?.test(value) ? Number(value) : value];
  });
  return Object.fromEntries(read);
}

/**
 * Fastify's validator compiler. Bodies are checked as they are; numbers in query strings and paths are converted from text. Compiles at
 * the first request.
 */
export const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  let compiled: ReturnType<typeof Compile> | undefined;
  const converts = httpPart === 'querystring' || httpPart === 'params';
  const part = httpPart === 'body' ? 'body' : httpPart === 'querystring' ? 'query string' : (httpPart ?? 'part');
  return (input: unknown) => {
    compiled ??= compiledOf(schema as SchemaNode);
    const value = converts ? readNumbers(schema as SchemaNode, input) : input;
    if (compiled.Check(value)) return { value };
    const work = { values: 0 };
    const violations = explain(schema as SchemaNode, value, '', work).slice(0, VIOLATIONS_MAX);
    if (violations.length === 0 && work.values <= EXPLAINED_VALUES_MAX) {
      // `explain` does not know the keyword (format, multipleOf): use the compiled validator's message.
      for (const error of compiled.Errors(value)[1]) {
        violations.push({ path: error.instancePath.slice(1).replaceAll('/', '.'), rule: error.message });
      }
    }
    return { error: new ValidationError(part, violations) };
  };
};
