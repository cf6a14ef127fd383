import type { TSchema } from 'typebox';
import type { EffectiveSetting } from '../schemas/system.ts';
import { type ConfigFile, fileSettings } from './file-schema.ts';
import { type Environment, variable } from './providers.ts';
import type { Setting, Settings } from './settings/declare.ts';
import { type Variable, variables } from './settings/variables.ts';

/** Whether a value may be shown: numbers, switches and choices. They hold no secret, address or header; all other values are only "set". */
function isShown(value: unknown, schema: TSchema, isSecret: boolean): boolean {
  if (isSecret) return false;
  const { enum: choices } = schema as { enum?: unknown };
  return typeof value === 'number' || typeof value === 'boolean' || (Array.isArray(choices) && choices.includes(value));
}

function textOf(value: unknown, schema: TSchema, isSecret: boolean): string {
  if (value === undefined) return 'not set';
  if (isShown(value, schema, isSecret)) return String(value);
  if (Array.isArray(value)) return `${value.length} ${value.length === 1 ? 'entry' : 'entries'}`;
  return 'set';
}

function defaultTextOf({ default: value, defaultText, schema }: Setting): string {
  if (defaultText !== undefined) return defaultText;
  // A default is part of the program: it holds nothing of the operator's.
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.join(', ');
  return textOf(value, schema, false);
}

interface Place {
  prefix: string;
  takesEffect: EffectiveSetting['takes_effect'];
}

function* settingsOf(settings: Settings, values: unknown, { prefix, takesEffect }: Place): Generator<EffectiveSetting> {
  const known = (values ?? {}) as Readonly<Record<string, unknown>>;
  for (const [name, declared] of Object.entries(settings)) {
    const { members, isSecret = false, schema, sentence } = declared;
    const effect = declared.takesEffect ?? takesEffect;
    const value = known[name];
    if (members?.step === '') {
      yield* settingsOf(members.settings, value, { prefix: `${prefix}${name}.`, takesEffect: effect });
      continue;
    }
    yield {
      name: `${prefix}${name}`,
      value: value === undefined ? defaultTextOf(declared) : shownValue(value, schema, isSecret),
      source: value === undefined ? 'default' : 'file',
      takes_effect: effect,
      meaning: sentence,
    };
  }
}

/** Of objects with names of the operator's choice, only their number. */
function shownValue(value: unknown, schema: TSchema, isSecret: boolean): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return textOf(value, schema, isSecret);
  const count = Object.keys(value).length;
  return `${count} ${count === 1 ? 'entry' : 'entries'}`;
}

function variableText(declared: Variable, text: string): string {
  const choice = text.toLowerCase();
  if (declared.type === 'choice') return declared.values.includes(choice) ? choice : 'set';
  const isNumber = declared.type === 'integer' || declared.type === 'usd';
  return isNumber && /^\d{1,16}(\.\d{1,9})?$/.test(text) ? text : 'set';
}

/** Every declared setting with its value and source. The configuration must be valid. It holds no secret, address or text of the operator's. */
export function effectiveSettings(environment: Environment, file: ConfigFile | undefined): EffectiveSetting[] {
  const ofVariables = Object.entries<Variable>(variables).map(([name, declared]): EffectiveSetting => {
    const text = variable(environment, name);
    const usual =
      declared.defaultText ?? ('default' in declared && declared.default !== undefined ? declared.default : 'not set');
    return {
      name,
      value: text === undefined ? String(usual) : variableText(declared, text),
      source: text === undefined ? 'default' : 'environment',
      takes_effect: 'at the next start',
      meaning: declared.sentence,
    };
  });
  return [...ofVariables, ...settingsOf(fileSettings, file, { prefix: '', takesEffect: 'at the next start' })];
}
