const repeat_max = 64;
const sample_chars_max = 1_000;

interface Reader {
  pattern: string;
  at: number;
}

function quantity(reader: Reader): number {
  const rest = reader.pattern.slice(reader.at);
  const range = /^\{(\d+)(?:,\d*)?\}/.exec(rest);
  const mark = range?.[0] ?? (/^[*+?]/.test(rest) ? rest.charAt(0) : '');
  reader.at += mark.length;
  if (mark !== '' && reader.pattern.charAt(reader.at) === '?') reader.at += 1;
  if (range !== null) return Math.min(Number(range[1]), repeat_max);
  return mark === '*' || mark === '?' ? 0 : 1;
}

function escaped(letter: string): string {
  const known: Record<string, string> = {
    d: '0',
    w: 'a',
    s: ' ',
    D: 'a',
    W: '-',
    S: 'a',
    n: '\n',
    t: '\t',
    b: '',
    B: '',
  };
  return known[letter] ?? letter;
}

/** The first character of a class, or for a negated class the first of some characters that its text does not name. */
function charClass(reader: Reader): string {
  let end = reader.at;
  while (end < reader.pattern.length && reader.pattern.charAt(end) !== ']') {
    end += reader.pattern.charAt(end) === '\\' ? 2 : 1;
  }
  const inner = reader.pattern.slice(reader.at, end);
  reader.at = end + 1;
  if (inner.startsWith('^')) return ['a', '0', '-', '~'].find((one) => !inner.includes(one)) ?? 'z';
  return inner.startsWith('\\') ? escaped(inner.charAt(1)) : inner.charAt(0);
}

function atom(reader: Reader): string {
  const char = reader.pattern.charAt(reader.at);
  reader.at += 1;
  if (char === '[') return charClass(reader);
  if (char === '\\') {
    reader.at += 1;
    return escaped(reader.pattern.charAt(reader.at - 1));
  }
  if (char === '(') {
    const prefix = /^\?(?::|<[A-Za-z]\w*>)/.exec(reader.pattern.slice(reader.at));
    reader.at += prefix?.[0].length ?? 0;
    const text = alternation(reader);
    reader.at += 1;
    return text;
  }
  if (char === '^' || char === '$') return '';
  return char === '.' ? 'a' : char;
}

function sequence(reader: Reader): string {
  let text = '';
  while (reader.at < reader.pattern.length && !'|)'.includes(reader.pattern.charAt(reader.at))) {
    const one = atom(reader);
    text = (text + one.repeat(quantity(reader))).slice(0, sample_chars_max);
  }
  return text;
}

function alternation(reader: Reader): string {
  const text = sequence(reader);
  while (reader.pattern.charAt(reader.at) === '|') {
    reader.at += 1;
    sequence(reader);
  }
  return text;
}

/** Makes a short text that matches a regular expression. It does not support look-around and back references. */
export function patternSample(pattern: string): string {
  return alternation({ pattern, at: 0 });
}
