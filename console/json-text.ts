/**
 * Reads JSON as text: finds the place of an error, and formats the same tokens on lines of their own. Numbers keep
 * every digit, because they are not parsed to values.
 */

/** Deeper texts are refused: people do not write them, and recursive functions would overflow the stack. */
const DEPTH_MAX = 100;
/** A longer layout is not made: the text then stays as it is. */
const PRETTY_CHARS_MAX = 1_000_000;

/** A longer text is not read. */
const TEXT_CHARS_MAX = 1_000_000;

const TOKEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: texts of JSON have no control characters.
  /[ \t\r\n]*(?:([{}[\]:,])|("[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null))/y;

export interface JsonText {
  /** The formatted text with one value a line. Empty if the text is not JSON. */
  pretty: string;
  /** The error and its place. */
  fault?: string;
}

type Expected = 'value' | 'value or ]' | 'name' | 'name or }' | ':' | ', or ]' | ', or }' | 'end';
const NAMES: Readonly<Record<Expected, string>> = {
  value: 'a value',
  'value or ]': 'a value or ]',
  name: 'a name in double quotes',
  'name or }': 'a name in double quotes, or }',
  ':': 'a colon',
  ', or ]': 'a comma or ]',
  ', or }': 'a comma or }',
  end: 'nothing more',
};

function place(text: string, at: number): string {
  const before = text.slice(0, at);
  const line = before.split('\n').length;
  return `line ${line}, column ${at - before.lastIndexOf('\n')}`;
}

/** Checks a text without recursion, and formats it. */
export function readJson(text: string): JsonText {
  if (text.length > TEXT_CHARS_MAX)
    return { pretty: '', fault: `longer than ${TEXT_CHARS_MAX} characters, not checked` };
  const stack: ('{' | '[')[] = [];
  const out: string[] = [];
  let expected: Expected = 'value';
  TOKEN.lastIndex = 0;
  let length = 0;
  const push = (part: string) => {
    length += part.length;
    if (length <= PRETTY_CHARS_MAX) out.push(part);
  };
  const indent = () => `\n${'  '.repeat(stack.length)}`;
  const afterValue = (): Expected => {
    const inside = stack.at(-1);
    return inside === undefined ? 'end' : inside === '{' ? ', or }' : ', or ]';
  };
  for (;;) {
    const from = TOKEN.lastIndex;
    const match = TOKEN.exec(text);
    if (match === null) {
      const rest = text.slice(from).search(/[^ \t\r\n]/);
      if (rest === -1 && expected === 'end') return { pretty: length > PRETTY_CHARS_MAX ? text : out.join('') };
      const at = rest === -1 ? text.length : from + rest;
      const what = rest === -1 ? 'the text ends' : `${JSON.stringify(text.slice(at, at + 12))} stands`;
      return { pretty: '', fault: `${place(text, at)}: ${what} where ${NAMES[expected]} is expected` };
    }
    const [, mark, scalar = ''] = match;
    const at = TOKEN.lastIndex - (mark ?? scalar).length;
    const isName = scalar.startsWith('"') && expected.startsWith('name');
    const isValue = mark === undefined || mark === '{' || mark === '[';
    const fits = isName || (isValue ? expected.startsWith('value') : expected.includes(mark));
    if (!fits) {
      const what = JSON.stringify((mark ?? scalar).slice(0, 12));
      return { pretty: '', fault: `${place(text, at)}: ${what} stands where ${NAMES[expected]} is expected` };
    }
    if (isName) {
      push(`${indent()}${scalar}`);
      expected = ':';
      continue;
    }
    if (isValue && stack.at(-1) === '[') push(indent());
    if (mark === '{' || mark === '[') {
      if (stack.length === DEPTH_MAX) {
        return { pretty: '', fault: `${place(text, at)}: nested more than ${DEPTH_MAX} levels deep` };
      }
      stack.push(mark);
      push(mark);
      expected = mark === '{' ? 'name or }' : 'value or ]';
    } else if (mark === '}' || mark === ']') {
      stack.pop();
      const isEmpty = expected.startsWith('name') || expected.startsWith('value');
      push(isEmpty ? mark : `${indent()}${mark}`);
      expected = afterValue();
    } else if (mark === ',') {
      push(mark);
      expected = stack.at(-1) === '{' ? 'name' : 'value';
    } else if (mark === ':') {
      push(': ');
      expected = 'value';
    } else {
      push(scalar);
      expected = afterValue();
    }
  }
}
