import type { RE2JS } from 're2js';
import { limits } from '../../limits.ts';
import { compileSteps } from './pattern-cost.ts';
import { re2 } from './re2.ts';

const NOT_RE2 = 'is not a regular expression in RE2 syntax: ';
/** A `\k` whose backslash is not itself escaped. */
const NAMED_BACKREFERENCE = /(?<!\\)(?:\\\\)*\\k/;

/**
 * Why a user's pattern is not accepted. Undefined if it is. Patterns are JavaScript-style in the syntax of RE2, so they
 * match in time linear in the text. Lookaround and backreferences, which RE2 does not have, are rejected, and so are
 * patterns whose programs are so large that linear time is slow.
 */
export function patternFault(pattern: string): string | undefined {
  // The translation below would read \\k, like every unknown escape, as the letter.
  if (NAMED_BACKREFERENCE.test(pattern)) return `${NOT_RE2}invalid escape sequence: \\k`;
  const translated = re2().RE2JS.translateRegExp(pattern);
  const steps = compileSteps(translated);
  if (steps > limits.filter_compile_steps_max) {
    return `is too large: compiling it may take ${steps} steps, ${limits.filter_compile_steps_max} are allowed`;
  }
  try {
    const size = re2().RE2JS.compile(translated).programSize();
    if (size <= limits.filter_program_size_max) return undefined;
    return `is too large: it compiles to ${size} instructions, ${limits.filter_program_size_max} are allowed`;
  } catch (error) {
    if (!(error instanceof re2().RE2JSException)) throw error;
    const reason = error.message.replace(/^error parsing regexp: /, '').slice(0, 200);
    return `${NOT_RE2}${reason}`;
  }
}

/** Translates JavaScript's escapes (\cA, \u0041, \/) to those of RE2. */
export function translatedPattern(pattern: string): string {
  return re2().RE2JS.translateRegExp(pattern);
}

/** Compiles a pattern that `patternFault` accepted. */
export function compilePattern(pattern: string): RE2JS {
  return re2().RE2JS.compile(translatedPattern(pattern));
}
