/** The tables of settings in the README and in the configuration guide, made from the declarations in `src/config/settings`. */
import { fileFields, fileSettings } from '../src/config/file-schema.ts';
import type { Setting, Settings } from '../src/config/settings/declare.ts';
import { type Variable, variables } from '../src/config/settings/variables.ts';

const code = (text: string) => `\`${text}\``;
const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
const rowOf = (...cells: string[]) => `| ${cells.join(' | ')} |\n`;

function valueText(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? 'none' : code(`[${value.join(', ')}]`);
  return code(String(value));
}

function defaultOf({ kind, default: value, defaultText }: Setting): string {
  if (kind === 'required') return 'required';
  return defaultText ?? (value === undefined ? '–' : valueText(value));
}

function expectationOf({ schema, members }: Setting): string {
  if (members?.step === '') return 'an object';
  const { description = '' } = schema as { description?: string };
  const choices = /^one of (.*)$/.exec(description)?.[1];
  return choices === undefined ? description : choices.split(', ').map(code).join(', ');
}

/** The rows of settings. Objects with the same settings as one before them are not repeated. */
function rowsOf(settings: Settings, prefix = ''): string {
  const seen = new Map<Settings, string>();
  return Object.entries(settings)
    .map(([name, declared]) => {
      const path = `${prefix}${name}`;
      const { members } = declared;
      const first = members && seen.get(members.settings);
      const value = first === undefined ? expectationOf(declared) : `as ${code(first)}`;
      const row = rowOf(code(path), value, defaultOf(declared), declared.sentence);
      if (members === undefined || first !== undefined) return row;
      seen.set(members.settings, path);
      return row + rowsOf(members.settings, `${path}${members.step}.`);
    })
    .join('');
}

/** Every setting of the file, a table for each section. */
export function settingsTables(): string {
  const head = '| setting | value | default | meaning |\n|---|---|---|---|\n';
  return Object.entries<Setting>(fileSettings)
    .map(([name, declared]) => {
      const { members, sentence, takesEffect } = declared;
      const title = `### ${code(`${name}${members?.step ?? ''}`)}`;
      const facts = `${capitalized(sentence)}. A change takes effect ${takesEffect}.`;
      const table = members === undefined ? head + rowsOf({ [name]: declared }) : head + rowsOf(members.settings);
      return `${title}\n\n${facts}\n\n${table}`;
    })
    .join('\n');
}

/** The settings of the file by the time at which their change applies. */
export function effectsTable(): string {
  const named = (effect: string) =>
    fileFields()
      .filter(({ takesEffect }) => takesEffect === effect)
      .map(({ name }) => code(name))
      .join(', ');
  return (
    '| setting | a change takes effect |\n|---|---|\n' +
    rowOf(named('at once'), 'at once') +
    rowOf(named('at the next start'), 'at the next start; the log names those that changed') +
    rowOf(
      'environment variables, also those that the file refers to; command-line options; whether the sandbox runs',
      'at the next start',
    )
  );
}

/** The environment variables, for the README. */
export function variablesTable(): string {
  const rows = Object.entries<Variable>(variables).map(([name, declared]) => {
    const { sentence, defaultText } = declared;
    const value = 'default' in declared ? declared.default : undefined;
    return rowOf(code(name), sentence, defaultText ?? (value === undefined ? '–' : valueText(value)));
  });
  return (
    '| setting | meaning | default |\n|---|---|---|\n' +
    rows.join('') +
    rowOf('`OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, …', 'turns a provider on', '–') +
    rowOf('`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`', 'the proxy for outgoing connections', '–')
  );
}
