import { limits } from '../limits.ts';
import { parseUsd } from '../schemas/money.ts';
import { ConfigError } from './config-error.ts';
import { type Environment, variable } from './providers.ts';
import { type Variable, type VariableName, variables } from './settings/variables.ts';

type Declared<Name extends VariableName> = (typeof variables)[Name];
type Value<V extends Variable> = V extends { type: 'integer' | 'usd' }
  ? number
  : V extends { type: 'choice'; values: readonly (infer Choice)[] }
    ? Choice
    : string;

/**
 * The value of a declared variable, or its default; undefined if it has neither. An amount of USD is returned in nano-USD.
 * Throws a `ConfigError` that names the variable and what is expected. It never quotes a secret.
 */
export function readVariable<const Name extends VariableName>(
  environment: Environment,
  name: Name,
): Value<Declared<Name>> | (Declared<Name> extends { default: unknown } ? never : undefined) {
  const declared: Variable = variables[name];
  const text = variable(environment, name);
  const value = text === undefined ? defaultOf(declared) : parsed(name, declared, text);
  return value as ReturnType<typeof readVariable<Name>>;
}

function defaultOf(declared: Variable): string | number | undefined {
  return 'default' in declared ? declared.default : undefined;
}

function parsed(name: string, declared: Variable, text: string): string | number {
  switch (declared.type) {
    case 'text':
      return text;
    case 'integer': {
      const { min, max } = declared;
      const value = Number(text);
      if (/^\d+$/.test(text) && value >= min && value <= max) return value;
      throw new ConfigError(`${name} must be a whole number from ${min} to ${max}, not "${text}"`);
    }
    case 'choice': {
      const choice = text.toLowerCase();
      if (declared.values.includes(choice)) return choice;
      throw new ConfigError(`${name} must be one of ${declared.values.join(', ')}, not "${choice}"`);
    }
    case 'usd': {
      const nano = parseUsd(text);
      if (nano !== undefined) return nano;
      throw new ConfigError(`${name} must be an amount of USD such as 5 or 0.50, not "${text}"`);
    }
    case 'secret':
      return checkedSecret(name, text, declared);
  }
}

function checkedSecret(name: string, value: string, { isSentInHeader }: { isSentInHeader: boolean }): string {
  if (value.length < limits.management_key_chars_min) {
    throw new ConfigError(`${name} must have ${limits.management_key_chars_min} characters or more`);
  }
  if (/\s/.test(value)) throw new ConfigError(`${name} must not contain white space`);
  // HTTP clients cannot send it: bytes beyond ASCII in a header are decoded in different ways.
  if (isSentInHeader && !/^[\x21-\x7e]+$/.test(value)) {
    throw new ConfigError(`${name} must be plain ASCII, because it is sent in a header`);
  }
  return value;
}
