/**
 * Patterns that make a backtracking matcher take exponential time, each with a text that causes it, as a function of
 * its length.
 */
export interface Catastrophe {
  pattern: string;
  attack: (length: number) => string;
}

const many =
  (part: string, end = '!') =>
  (length: number) =>
    part.repeat(Math.ceil(length / part.length)) + end;

/** Nested and overlapping repetitions, polynomial ones, rewritten patterns of published advisories, and patterns that RE2 does not support. */
export const CATASTROPHES: readonly Catastrophe[] = [
  { pattern: '(a+)+$', attack: many('a') },
  { pattern: '(a*)*$', attack: many('a') },
  { pattern: '(a|a)*$', attack: many('a') },
  { pattern: '(a|aa)+$', attack: many('a') },
  { pattern: '(a|a?)+$', attack: many('a') },
  { pattern: '(.*a){12}', attack: many('a', '') },
  { pattern: '(x+x+)+y', attack: many('x', '') },
  { pattern: '([a-zA-Z]+)*\\d', attack: many('aZ') },
  { pattern: '(?:a+b?)+c', attack: many('ab') },
  { pattern: '((a+)+)+$', attack: many('a') },
  { pattern: '(\\w+\\s?)*$', attack: many('ab ', '!') },
  { pattern: '(\\d+)*\\D\\d', attack: many('1', '') },
  { pattern: '^(([a-z])+.)+[A-Z]([a-z])+$', attack: many('a', '') },
  { pattern: '(?:\\s*\\w+\\s*)+;', attack: many('a ') },
  { pattern: '(?:[^"]*"[^"]*")*x', attack: many('""') },
  { pattern: '\\s+$', attack: many(' ', 'x') },
  { pattern: '^\\s+|\\s+$', attack: (length) => `x${' '.repeat(length)}x` },
  { pattern: '.*.*=.*', attack: many('x', '') },
  { pattern: '(?:.*,){8}P', attack: many('1,', '') },
  { pattern: 'a.*b|a', attack: many('a', '') },
  { pattern: 'a.*?b|a', attack: many('a', '') },
  { pattern: '(?s:<.*>)|<', attack: many('<', '') },
  { pattern: '\\w+@\\w+\\.\\w+', attack: many('a', '') },
  { pattern: '[\\w.]+@[\\w.]+', attack: many('a.', '') },
  { pattern: '^([a-zA-Z0-9])(([\\-.]|[_]+)?([a-zA-Z0-9]+))*(@)$', attack: many('a') },
  { pattern: '^(?:(?:[a-z0-9]+-?)*[a-z0-9]+\\.)+[a-z]{2,}$', attack: many('a-', '') },
  { pattern: '(?:https?://)?(?:[-\\w]+\\.)+[-\\w]+/', attack: many('a.') },
  { pattern: '\\[(?:[^\\[\\]]|\\[[^\\]]*\\])*\\]\\(', attack: many('[', '') },
  { pattern: '!\\[(.*?)\\]\\((.*?)\\)', attack: many('![', '') },
  { pattern: '<!--(?:-?[^>])*-->', attack: many('<!--', '') },
  { pattern: '/\\*(?:[^*]|\\*[^/])*\\*/', attack: many('/*', '') },
  { pattern: '(?:"(?:\\\\.|[^"])*")+:', attack: many('"\\"', '') },
  { pattern: '^(?:\\+?\\d{1,3})?(?:[ .-]?\\(?\\d+\\)?)+$', attack: many('1', 'x') },
  {
    pattern: '^#?(?:[0-9a-f]{3}){1,2}(?:,\\s*(?:[0-9a-f]+\\s*)+)*;',
    attack: (length) => `#abc,${'a '.repeat(length / 2)}`,
  },
  { pattern: '^rgba?\\((?:\\s*\\d+%?\\s*,?)+\\)$', attack: (length) => `rgb(${'1 '.repeat(length / 2)}` },
  { pattern: '(?:[0-9]+[smhd]? ?)+ago', attack: many('1 ') },
  { pattern: '^(?:[\\w-]+ *= *(?:"[^"]*"|[^";,]+)[;,]? *)*$', attack: many('a=b ', '"') },
  { pattern: 'charset=\\s*"?\\s*([^\\s;"]+)\\s*"?\\s*;', attack: (length) => `charset=${' '.repeat(length)}` },
  { pattern: '(?:multipart/[^;]*;?)*boundary', attack: many('multipart/;', '') },
  {
    pattern: '^(?:v|=)?\\s*\\d+(?:\\.\\d+)*(?:-(?:[0-9a-z-]+\\.?)+)?\\+$',
    attack: (length) => `1-${'a.'.repeat(length / 2)}`,
  },
  { pattern: '(?:;\\s*[^=;]+=[^;]*)*;;', attack: many(';a=b', '') },
  { pattern: '(?:Mozilla.*){6}Safari', attack: many('Mozilla ', '') },
  { pattern: 'Opera(?:.*Version){4}', attack: many('Opera Version', '') },
  { pattern: '(?i)(?:select.+)+from.+where', attack: many('select ', '') },
  { pattern: '(?:\\{\\{.*?)+\\}\\}\\}', attack: many('{{', '') },
  { pattern: '(a{0,30}){0,30}b', attack: many('a', '') },
  { pattern: '(?=(a+))a*b\\1', attack: many('a') },
  { pattern: '(a+)\\1+b', attack: many('a') },
  { pattern: '(?<!a)(?:a+)+b', attack: many('a') },
  { pattern: '(?>a+)b', attack: many('a') },
  { pattern: '(?<w>a+)\\k<w>b', attack: many('a') },
  { pattern: '(?:(?:a{1,100}){1,100})b', attack: many('a') },
];
