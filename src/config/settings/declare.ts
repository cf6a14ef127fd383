import Type, { type Static, type TObject, type TOptional, type TSchema } from 'typebox';

/**
 * A setting of `gateway.yaml` is declared once, in this folder. The JSON schema, the guide's tables, the defaults, the types of the
 * code and what a reload does with a change come from the declaration. Environment variables: `variables.ts`.
 */

/** When a change of the file takes effect. */
export type TakesEffect = 'at once' | 'at the next start';

interface Facts {
  /** What the setting is for, in Markdown, without a full stop. */
  sentence: string;
  /** The default in words, for the guide, if `default` is not set or says too little. */
  defaultText?: string;
  /** Whether a wrong value must not be quoted. */
  isSecret?: boolean;
  /** When a change takes effect, if it differs from the section's. */
  takesEffect?: TakesEffect;
  /** The field of `Config` that holds the setting, if it is not a member of the section's field. */
  field?: string;
}

/** A declared setting. `Kind` says whether the code sees a default, `undefined`, or always a value. */
export interface Setting<S extends TSchema = TSchema, Kind extends SettingKind = SettingKind> extends Facts {
  /** Its `description` completes the sentence "… must be": it is also the message for a wrong value. */
  schema: S;
  kind: Kind;
  default?: unknown;
  /** The settings inside of it, and how the guide writes the step to them: `''`, `.<slug>` or `[]`. */
  members?: { step: string; settings: Settings };
}

type SettingKind = 'default' | 'optional' | 'required';
export type Settings = Readonly<Record<string, Setting>>;

type Properties<T extends Settings> = {
  [Name in keyof T]: T[Name] extends Setting<infer S, infer Kind>
    ? Kind extends 'required'
      ? S
      : TOptional<S>
    : never;
};
/** The schema of an object that has these settings. */
export type ObjectSchema<T extends Settings> = TObject<Properties<T>>;

/** The values of settings, with the defaults that are declared. */
export type Filled<T extends Settings> = {
  [Name in keyof T]: T[Name] extends Setting<infer S, infer Kind>
    ? Kind extends 'optional'
      ? Static<S> | undefined
      : Static<S>
    : never;
};

/** A setting with a value or `undefined`. */
export function setting<S extends TSchema>(schema: S, facts: Facts & { default: Static<S> }): Setting<S, 'default'>;
export function setting<S extends TSchema>(schema: S, facts: Facts): Setting<S, 'optional'>;
export function setting<S extends TSchema>(schema: S, facts: Facts): Setting<S, SettingKind> {
  return { ...facts, schema, kind: 'default' in facts ? 'default' : 'optional' };
}

/** A setting without which the object that it belongs to is wrong. */
export function required<S extends TSchema>(schema: S, facts: Facts): Setting<S, 'required'> {
  return { ...facts, schema, kind: 'required' };
}

/** The schema of an object of settings. It accepts no other members. */
export function objectOf<T extends Settings>(settings: T, description?: string): ObjectSchema<T> {
  const properties = Object.fromEntries(
    Object.entries(settings).map(([name, { schema, kind }]) => [
      name,
      kind === 'required' ? schema : Type.Optional(schema),
    ]),
  ) as Properties<T>;
  return Type.Object(properties, {
    additionalProperties: false,
    description: description ?? `an object with ${listed(Object.keys(settings))}`,
  });
}

function listed(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

/** A setting that is an object of settings. `description`: what it must be, if a list of its members says too little. */
export function group<const T extends Settings>(
  settings: T,
  { description, ...facts }: Facts & { description?: string },
): Setting<ObjectSchema<T>, 'optional'> & { settings: T } {
  return {
    ...facts,
    schema: objectOf(settings, description),
    kind: 'optional',
    members: { step: '', settings },
    settings,
  };
}

/** A section: a setting at the top of the file that is an object of settings. */
export interface Section<T extends Settings = Settings> extends Setting<ObjectSchema<T>, 'optional'> {
  settings: T;
  takesEffect: TakesEffect;
}

export function section<const T extends Settings>(
  settings: T,
  facts: SectionFacts & { description?: string },
): Section<T> {
  return { ...group(settings, facts), takesEffect: facts.takesEffect };
}

interface SectionFacts extends Facts {
  takesEffect: TakesEffect;
}

/** A setting that holds an object of the same settings for each name. `name`: what the names are, for the guide. */
export function byName<S extends TSchema>(
  { schema, members }: Setting<S>,
  name: string,
  { description, ...facts }: Facts & { description: string },
) {
  const record = Type.Record(Type.String(), schema, { description });
  const all = members && { members: { ...members, step: `.<${name}>` } };
  return { ...facts, ...all, schema: record, kind: 'optional' } satisfies Setting as Setting<typeof record, 'optional'>;
}

/** A setting that holds a list of objects of the same settings. */
export function listOfGroups<S extends TSchema>(
  { schema, members }: Setting<S>,
  { description, minItems, maxItems, ...facts }: Facts & { description: string; minItems?: number; maxItems?: number },
) {
  const list = Type.Array(schema, {
    description,
    ...(minItems === undefined ? {} : { minItems }),
    ...(maxItems === undefined ? {} : { maxItems }),
  });
  const all = members && { members: { ...members, step: '[]' } };
  return { ...facts, ...all, schema: list, kind: 'optional' } satisfies Setting as Setting<typeof list, 'optional'>;
}

/** The values of these settings in the file, with the defaults of those that it does not set. */
export function filled<T extends Settings>(
  { settings }: { settings: T },
  value: Partial<Record<keyof T, unknown>> | undefined,
): Filled<T> {
  return Object.fromEntries(
    Object.entries(settings).map(([name, declared]) => [name, value?.[name] ?? declared.default]),
  ) as Filled<T>;
}

/** Every setting below these, with its path as the guide writes it: `providers.<slug>.base_url`. */
export function* allSettings(settings: Settings, prefix = ''): Generator<{ path: string; declared: Setting }> {
  for (const [name, declared] of Object.entries(settings)) {
    const path = `${prefix}${name}`;
    yield { path, declared };
    const { members } = declared;
    if (members !== undefined) yield* allSettings(members.settings, `${path}${members.step}.`);
  }
}
