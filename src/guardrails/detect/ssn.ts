import type { Span } from '../finding.ts';
import { isGluedLeft, isWord, wordsBefore } from './chars.ts';
import { gaps, type NumberRun } from './number-run.ts';

const LABEL = /(?:\bssn\b|\bsocial[ -]?sec|\bsoc\.? ?sec)[^\d\n]{0,24}$/i;

/** Whether a number can be issued (Social Security Administration, "SSN randomization"): never areas 000, 666 and 900 up, group 00, serial 0000. */
function isIssued(number: string): boolean {
  const area = number.slice(0, 3);
  return area !== '000' && area !== '666' && area < '900' && number.slice(3, 5) !== '00' && number.slice(5) !== '0000';
}

const isJoin = (gap: number) => gap === gaps.dash || gap === gaps.space || gap === gaps.mixed;

/** The Social Security number that starts with a group of digits: 3-2-4 with dashes or spaces, or nine digits after a label. */
export function ssnAt(run: NumberRun, first: number): Span | undefined {
  const { text } = run;
  const isBare = run.size(first) === 9;
  const last = isBare ? first : first + 2;
  const isShape = run.size(first) === 3 && run.size(first + 1) === 2 && run.size(first + 2) === 4;
  if (!isBare && !(isShape && isJoin(run.gap(first)) && isJoin(run.gap(first + 1)))) return undefined;
  const [start, end] = [run.start(first), run.end(last)];
  if (isGluedLeft(text, start) || isWord(text.charCodeAt(end)) || !isIssued(run.number(first, last))) return undefined;
  const before = run.gap(first - 1);
  const after = run.gap(last);
  const hasNeighbours = before !== 0 || after !== 0;
  const isSpaced = run.gap(first) !== gaps.dash;
  // Beside other numbers, groups of digits with spaces are as likely a row of a table.
  const isPlain = isBare ? false : !hasNeighbours || (!isSpaced && isLoose(before) && isLoose(after));
  return isPlain || LABEL.test(wordsBefore(text, start)) ? { start, end } : undefined;
}

/** Whether a separator keeps two numbers apart. */
function isLoose(gap: number): boolean {
  return gap === 0 || gap === gaps.space || gap === gaps.mixed || gap === gaps.other;
}
