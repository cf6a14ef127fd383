import type { Span } from '../finding.ts';
import { isDigit, isGluedLeft, isWord, wordsBefore } from './chars.ts';
import { gaps, type NumberRun } from './number-run.ts';
import type { NumberingPlans } from './numbering-plans.ts';

/** The longest number (ITU-T E.164, section 6.2.1), with a trunk prefix in brackets. */
const PHONE_DIGITS_MAX = 16;
const DIGITS_MIN = 7;

/** Where numbers are looked for that begin with a trunk prefix, or that a word calls a telephone number. */
const KNOWN_REGIONS = [
  ...['US', 'GB', 'DE', 'FR', 'ES', 'IT', 'PT', 'BR', 'PL', 'NL', 'BE', 'AT', 'CH', 'SE', 'IE'],
  ...['JP', 'IN', 'AU', 'CN', 'KR', 'MX', 'ZA', 'TR'],
];
const CALLED_PHONE =
  /(?<![\p{L}\p{N}])(?:tel|tél|phone|telephone|téléphone|telefon|telefone|telefono|teléfono|mobile?|móvil|movil|celular|cell(?:phone)?|handy|portable|fax|komórka|kom|hotline|whatsapp|sms|(?:call|ring|reach|text) (?:me|us|him|her|them)(?: (?:at|on))?)(?:[\s:.,="'-]| (?:is|no|nr|number|numer|ist|est|é|es)\b){0,6}\(?$|(?:電話番号?|携帯|電話|电话|手机|फ़?ोन|मोबाइल)[^\n\d]{0,8}$/iu;
/** What stands between such a word and its number, or is the word's own. */
const CALLED_PHONE_END = /[\s:.,="'(\p{L}\p{M}-]/u;
const CALLED_OTHERWISE =
  /(?:[#$£€¥%]|(?:^|[^\w])(?:id|ids|order|orders|invoice|ticket|ref|reference|sku|serial|acct|account|case|tracking|timestamp|time|epoch|ts|seed|isbn|ean|upc|build|version|pid|uid|size|bytes|total|count)["'\s:=#.]{0,4}(?:(?:no|nr|num|number|id)\b\.?["'\s:=#]{0,3})?|(?:_id|Id|ID)["'\s:=]{1,4}|(?<!wa\.me)\/)$/i;

const isSame = (gap: number) => gap === gaps.dash || gap === gaps.dot;
const isLoose = (gap: number) => gap === 0 || gap === gaps.space || gap === gaps.mixed || gap === gaps.other;
/** A word ends a number, unless it is an extension: `555-0100x12`. */
const isEnd = (text: string, at: number) =>
  !isWord(text.charCodeAt(at)) || (/[xX]/.test(text.charAt(at)) && isDigit(text.charCodeAt(at + 1)));
const isNanpArea = (run: NumberRun, index: number) => run.text.charCodeAt(run.start(index)) > 0x31;

/** Finds telephone numbers in groups of digits: international ones of all countries, and those of `regions` as they are dialled there. */
export class PhoneFinder {
  readonly #plans: NumberingPlans;
  readonly #regions: readonly string[];
  readonly #isNanp: boolean;
  /** Whether there are regions with other plans as well. */
  readonly #hasOthers: boolean;

  constructor(plans: NumberingPlans, regions: readonly string[]) {
    this.#plans = plans;
    this.#regions = regions.filter((region) => plans.hasRegion(region));
    const isNanp = (region: string) => ['US', 'CA'].includes(region);
    this.#isNanp = this.#regions.some(isNanp);
    this.#hasOthers = !this.#regions.every(isNanp);
  }

  /** The telephone number that begins with a group of digits. */
  at(run: NumberRun, first: number): Span | undefined {
    const { text } = run;
    const start = run.start(first);
    const before = text.charAt(start - 1);
    if (before === '+') return this.#international(run, first, start - 1);
    if (isGluedLeft(text, start)) return undefined;
    if (this.#isNanp) {
      const found = this.#nanp(run, first);
      if (found !== undefined) return found;
    }
    const isExitCode = text.startsWith('00', start) && run.digitsOf(first, run.count - 1) > 9;
    if (isExitCode && isLoose(run.gap(first - 1))) {
      const found = this.#international(run, first, start, 2);
      if (found !== undefined) return found;
    }
    return this.#national(run, first);
  }

  #span(run: NumberRun, start: number, last: number): Span | undefined {
    const end = run.end(last);
    if (!isEnd(run.text, end)) return undefined;
    // The bracket around an area code is of the number.
    const opens = start > 0 && run.text.charAt(start - 1) === '(' && run.text.slice(start, end).includes(')');
    return { start: opens ? start - 1 : start, end };
  }

  /** With its calling code, after a plus sign or the digits for a call abroad. */
  #international(run: NumberRun, first: number, start: number, exitDigits = 0): Span | undefined {
    if (isGluedLeft(run.text, start)) return undefined;
    let last = first;
    while (run.gap(last) !== 0 && run.digitsOf(first, last + 1) <= PHONE_DIGITS_MAX + exitDigits) last += 1;
    let possible: number | undefined;
    for (; last >= first; last -= 1) {
      const written = run.digitsOf(first, last) - exitDigits;
      if (written < DIGITS_MIN) break;
      if (!isEnd(run.text, run.end(last))) continue;
      const number = run.number(first, last).slice(exitDigits);
      const kind = this.#plans.international(number) ?? this.#withoutTrunk(run, first, last, exitDigits);
      if (kind === 'valid') return this.#span(run, start, last);
      if (kind === 'possible' && exitDigits === 0 && written >= (first === last ? 11 : 10)) possible = last;
    }
    return possible === undefined ? undefined : this.#span(run, start, possible);
  }

  /** `+44 (0)20 …`: the trunk prefix in brackets is not dialled from abroad. */
  #withoutTrunk(run: NumberRun, first: number, last: number, exitDigits: number): 'valid' | 'possible' | undefined {
    for (let index = first + 1; index < last && index < first + 3; index += 1) {
      if (run.size(index) !== 1 || run.text.charAt(run.start(index) - 1) !== '(') continue;
      const number = run.number(first, index - 1) + run.number(index + 1, last);
      return this.#plans.international(number.slice(exitDigits));
    }
    return undefined;
  }

  /** As in North America: three, three and four digits, or ten in a row, with or without a 1 in front. */
  #nanp(run: NumberRun, first: number): Span | undefined {
    const hasCode = run.size(first) === 1 && run.text.charAt(run.start(first)) === '1';
    const area = hasCode && run.gap(first) !== 0 && run.gap(first) !== gaps.slash ? first + 1 : first;
    const [one, two, three] = [run.size(area), run.size(area + 1), run.size(area + 2)];
    const start = run.start(first);
    if (one === 3 && two === 3 && three === 4) return this.#grouped(run, first, area);
    if (one === 3 && two === 7 && isNanpArea(run, area) && !isSame(run.gap(area + 1)) && !isSame(run.gap(first - 1))) {
      const is_printed = run.gap(area) === gaps.dash || run.gap(area) === gaps.close;
      return is_printed || this.#isCalledPhone(run, first) ? this.#span(run, start, area + 1) : undefined;
    }
    const isBare = one === 10 || (one === 11 && run.text.charAt(run.start(area)) === '1');
    if (!isBare || !isLoose(run.gap(area)) || !isLoose(run.gap(first - 1))) return undefined;
    const number = run.number(area, area).slice(-10);
    const isPhone = number.startsWith('555') || this.#plans.international(`1${number}`) === 'valid';
    if (this.#isCalledPhone(run, first)) return this.#span(run, start, area);
    return isPhone && !CALLED_OTHERWISE.test(wordsBefore(run.text, start)) ? this.#span(run, start, area) : undefined;
  }

  #grouped(run: NumberRun, first: number, area: number): Span | undefined {
    const [before, left, right, after] = [run.gap(first - 1), run.gap(area), run.gap(area + 1), run.gap(area + 2)];
    if (!isLoose(before) || !isLoose(after) || right > gaps.dot) return undefined;
    const start = run.start(first);
    const is_printed =
      left === gaps.close || (isSame(left) && isSame(right)) || (left === gaps.space && right === gaps.dash);
    if (is_printed || left === gaps.slash) return this.#span(run, start, area + 2);
    // With spaces alone it may be a row of numbers.
    const isAlone = before === 0 && after === 0 && isNanpArea(run, area);
    return isAlone || this.#isCalledPhone(run, first) ? this.#span(run, start, area + 2) : undefined;
  }

  #isCalledPhone(run: NumberRun, first: number): boolean {
    const start = run.start(first);
    return CALLED_PHONE_END.test(run.text.charAt(start - 1)) && CALLED_PHONE.test(wordsBefore(run.text, start));
  }

  /** As it is dialled inside a region: one that is asked for, or any that is known where the number says that it is one. */
  #national(run: NumberRun, first: number): Span | undefined {
    const before = run.gap(first - 1);
    if (!isLoose(before) || run.digitsOf(first, run.count - 1) < DIGITS_MIN) return undefined;
    const hasTrunk = run.text.charCodeAt(run.start(first)) === 0x30;
    const isBracketed = run.gap(first) === gaps.close && run.text.charAt(run.start(first) - 1) === '(';
    const isMine = this.#hasOthers && (run.gap(first) !== 0 || hasTrunk);
    const is_printed = isBracketed || (hasTrunk && isPrinted(run, first));
    // What calls it a telephone number stands before it, not before another number.
    const isCalled = before === 0 && this.#isCalledPhone(run, first);
    if ((!isMine && !is_printed && !isCalled) || isDate(run, first)) return undefined;
    if (!isCalled && CALLED_OTHERWISE.test(wordsBefore(run.text, run.start(first)))) return undefined;
    const regions = isCalled || is_printed ? [...this.#regions, ...KNOWN_REGIONS] : this.#regions;
    let last = first;
    while (run.gap(last) !== 0 && run.digitsOf(first, last + 1) < PHONE_DIGITS_MAX) last += 1;
    for (; last >= first; last -= 1) {
      const digits = run.digitsOf(first, last);
      if (digits < (isCalled ? DIGITS_MIN : DIGITS_MIN + 2)) return undefined;
      const isApart = isLoose(run.gap(last)) && isEnd(run.text, run.end(last));
      if (!isApart) continue;
      const number = run.number(first, last);
      const hasIt = (region: string) =>
        (isCalled || !is_printed || isBracketed || this.#plans.prefixOf(region) === '0') &&
        this.#plans.isNational(number, region);
      if (regions.some(hasIt)) return this.#span(run, run.start(first), last);
    }
    return undefined;
  }
}

/** Whether groups of digits are set apart as numbers with a trunk prefix are: not as Social Security numbers, nor as a part of a row. */
function isPrinted(run: NumberRun, first: number): boolean {
  if (run.size(first) < 2 || run.gap(first) === 0 || run.gap(first - 1) !== 0) return false;
  const isPair = run.gap(first + 1) === 0;
  if (isPair && run.size(first) === 2 && isSame(run.gap(first))) return false;
  return run.size(first) !== 3 || run.size(first + 1) !== 2 || run.size(first + 2) !== 4;
}

/** Whether groups of digits are a date (17.05.2024, 2024-05-17, 05/17/24), with or without a time after it. */
function isDate(run: NumberRun, first: number): boolean {
  const gap = run.gap(first);
  const [one, two, three] = [run.size(first), run.size(first + 1), run.size(first + 2)];
  if (gap === 0 || gap === gaps.space || run.gap(first + 1) !== gap || two > 2) return false;
  const isShape = (one === 4 && three <= 2) || (one <= 2 && (three === 4 || three === 2));
  if (!isShape) return false;
  const value = (index: number) => Number(run.number(index, index));
  const isDay = (day: number) => day >= 1 && day <= 31;
  const isYear = (year: number) => year >= 1900 && year < 2100;
  if (!isDay(value(first + 1))) return false;
  if (one === 4) return isYear(value(first)) && isDay(value(first + 2));
  return isDay(value(first)) && (three === 2 || isYear(value(first + 2)));
}
