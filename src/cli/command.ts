import { type ParseArgsConfig, parseArgs } from 'node:util';
import { didYouMean } from '../config/config-error.ts';
import type { Environment } from '../config.ts';

/** One command of the program. */
export interface Command {
  /** The output of `--help`. */
  usage: string;
  /** Returns the exit code, or -1 if it keeps running. */
  run(args: string[], environment: Environment): Promise<number>;
}

/** A command refuses to act; the message is a sentence for the operator, and the program exits with 1. */
export class Refusal extends Error {
  override readonly name: string = 'Refusal';
}

/** Wrong arguments; the program exits with 2. Without a message the whole usage is printed. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

const config = { type: 'string' } as const;
const json = { type: 'boolean', default: false } as const;

/** Options of several commands. */
export const common = { config, json };

/** Parses the command line with Node's parser. Throws a `UsageError` that says what is wrong. */
export function readArguments<const T extends ParseArgsConfig>(described: T): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(described);
  } catch (error) {
    if (!(error as NodeJS.ErrnoException).code?.startsWith('ERR_PARSE_ARGS')) throw error;
    throw new UsageError(faultOf(described));
  }
}

function faultOf({ args, options = {}, allowPositionals = false }: ParseArgsConfig): string {
  const { tokens } = parseArgs({ args: args ?? [], options, allowPositionals: true, strict: false, tokens: true });
  for (const token of tokens) {
    if (token.kind === 'positional' && !allowPositionals) return `'${token.value}' is not expected here.`;
    if (token.kind !== 'option') continue;
    const { name, rawName, value } = token;
    const option = options[name];
    const known = Object.keys(options).map((option) => `--${option}`);
    if (option === undefined) return sentence(`There is no option ${rawName}${didYouMean(rawName, known)}`);
    if (option.type === 'boolean' && value !== undefined) return `${rawName} takes no value.`;
    if (option.type === 'boolean') continue;
    if (value === undefined) return `${rawName} needs a value.`;
    if (!token.inlineValue && value.startsWith('-')) {
      return `${rawName} needs a value; write one that begins with a dash as ${rawName}=${value}`;
    }
  }
  return 'The options cannot be read.';
}

const sentence = (text: string) => (text.endsWith('?') ? text : `${text}.`);

/** Prints a value for programs. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
}
