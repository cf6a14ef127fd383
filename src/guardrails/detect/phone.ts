import type { Span } from '../finding.ts';
import { isDigit, isGluedLeft, isWord, wordsBefore } from './chars.ts';
import { gaps, type NumberRun } from './number-run.ts';
import type { NumberingPlans } from './numbering-plans.ts';

/** The longest number (ITU-T E.164, section 6.2.1), with a trunk prefix in brackets. */
const PHONE_DIGITS_MAX = 16;
const DIGITS_MIN = 7;

/** Regions whose national numbers are found if they start with a trunk prefix or follow a label. */
const KNOWN_REGIONS = [
  ...['US', 'GB', 'DE', 'FR', 'ES', 'IT', 'PT', 'BR', 'PL', 'NL', 'BE', 'AT', 'CH', 'SE', 'IE'],
  ...['JP', 'IN', 'AU', 'CN', 'KR', 'MX', 'ZA', 'TR'],
];
const PHONE_LABEL =
  /(?<![\p{L}\p{N}])(?:tel|tél|phone|telephone|téléphone|telefon|telefone|telefono|teléfono|mobile?|móvil|movil|celular|cell(?:phone)?|handy|portable|fax|komórka|kom|hotline|whatsapp|sms|(?:call|ring|reach|text) (?:me|us|him|her|them)(?: (?:at|on))?)(?:[\s:.,="'-]| (?:is|no|nr|number|numer|ist|est|é|es)\b){0,6}\(?$|(?:電話番号?|携帯|電話|电话|手机|फ़?ोन|मोबाइल)[^\n\d]{0,8}$/iu;
/** A character between a label and its number, or of the label itself. */
const PHONE_LABEL_END = /[\s:.,="'(\p{L}\p{M}-]/u;
const OTHER_LABEL =
  /(?:[#$£€¥%]|(?:^|[^\w])(?:id|ids|order|orders|invoice|ticket|ref|reference|sku|serial|acct|account|case|tracking|timestamp|time|epoch|ts|seed|isbn|ean|upc|build|version|pid|uid|size|bytes|total|count)["'\s:=#.]{0,4}(?:(?:no|nr|num|number|id)\b\.?["'\s:=#]{0,3})?|(?:_id|Id|ID)["'\s:=]{1,4}|(?<!wa\.me)\/)$/i;

const isSame = (gap: number) => gap === gaps.dash || gap === gaps.dot;
const isLoose = (gap: number) => gap === 0 || gap === gaps.space || gap === gaps.mixed || gap === gaps.other;
/** Whether a number can end here: not before a letter, unless that starts an extension, as in `555-0100x12`. */
const isEnd = (text: string, at: number) =>
  !isWord(text.charCodeAt(at)) || (/[xX]/.test(text.charAt(at)) && isDigit(text.charCodeAt(at + 1)));
const isNanpArea = (run: NumberRun, index: number) => run.text.charCodeAt(run.start(index)) > 0x31;

/** Finds telephone numbers in groups of digits: international numbers of all countries, national numbers of `regions`. */
export class PhoneFinder {
  readonly #plans: NumberingPlans;
  readonly #regions: readonly string[];
  readonly #isNanp: boolean;
  /** Whether some regions have other numbering plans. */
  readonly #hasOthers: boolean;

  constructor(plans: NumberingPlans, regions: readonly string[]) {
    this.#plans = plans;
    this.#regions = regions.filter((region) => plans.hasRegion(region));
    const isNanp = (region: string) => ['US', 'CA'].includes(region);
    this.#isNanp = this.#regions.some(isNanp);
    this.#hasOthers = !this.#regions.every(isNanp);
  }

  /** The telephone number that starts with a group of digits. */
  at(run: NumberRun, first: number): Span | undefined {
    const { text } = run;
    const start = run.start(first);
    const before = text.charAt(start - 1);
    if (before === '+') return this.#international(run, first, start - 1);
    if (isGluedLeft(text, start)) return undefined;
    if (this.#isNanp) {
      const span = this.#nanp(run, first);
      if (span !== undefined) return span;
    }
    const isExitCode = text.startsWith('00', start) && run.digitsOf(first, run.count - 1) > 9;
    if (isExitCode && isLoose(run.gap(first - 1))) {
      const span = this.#international(run, first, start, 2);
      if (span !== undefined) return span;
    }
    return this.#national(run, first);
  }

  #span(run: NumberRun, start: number, last: number): Span | undefined {
    const end = run.end(last);
    if (!isEnd(run.text, end)) return undefined;
    // The bracket before an area code is part of the number.
    const opens = start > 0 && run.text.charAt(start - 1) === '(' && run.text.slice(start, end).includes(')');
    return { start: opens ? start - 1 : start, end };
  }

  /** A number with its calling code, after a plus sign or the digits of an international call. */
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

  /** Checks a number without its trunk prefix in brackets, which is not dialled from abroad: `+44 (0)20 …`. */
  #withoutTrunk(run: NumberRun, first: number, last: number, exitDigits: number): 'valid' | 'possible' | undefined {
    for (let index = first + 1; index < last && index < first + 3; index += 1) {
      if (run.size(index) !== 1 || run.text.charAt(run.start(index) - 1) !== '(') continue;
      const number = run.number(first, index - 1) + run.number(index + 1, last);
      return this.#plans.international(number.slice(exitDigits));
    }
    return undefined;
  }

  /** A North American number: 3-3-4 or ten digits, with or without a leading 1. */
  #nanp(run: NumberRun, first: number): Span | undefined {
    const hasCode = run.size(first) === 1 && run.text.charAt(run.start(first)) === '1';
    const area = hasCode && run.gap(first) !== 0 && run.gap(first) !== gaps.slash ? first + 1 : first;
    const [one, two, three] = [run.size(area), run.size(area + 1), run.size(area + 2)];
    const start = run.start(first);
    if (one === 3 && two === 3 && three === 4) return this.#grouped(run, first, area);
    if (one === 3 && two === 7 && isNanpArea(run, area) && !isSame(run.gap(area + 1)) && !isSame(run.gap(first - 1))) {
      const isPrinted = run.gap(area) === gaps.dash || run.gap(area) === gaps.close;
      return isPrinted || this.#hasPhoneLabel(run, first) ? this.#span(run, start, area + 1) : undefined;
    }
    const isBare = one === 10 || (one === 11 && run.text.charAt(run.start(area)) === '1');
    if (!isBare || !isLoose(run.gap(area)) || !isLoose(run.gap(first - 1))) return undefined;
    const number = run.number(area, area).slice(-10);
    const isPhone = number.startsWith('555') || this.#plans.international(`1${number}`) === 'valid';
    if (this.#hasPhoneLabel(run, first)) return this.#span(run, start, area);
    return isPhone && !OTHER_LABEL.test(wordsBefore(run.text, start)) ? this.#span(run, start, area) : undefined;
  }

  #grouped(run: NumberRun, first: number, area: number): Span | undefined {
    const [before, left, right, after] = [run.gap(first - 1), run.gap(area), run.gap(area + 1), run.gap(area + 2)];
    if (!isLoose(before) || !isLoose(after) || right > gaps.dot) return undefined;
    const start = run.start(first);
    const isPrinted =
      left === gaps.close || (isSame(left) && isSame(right)) || (left === gaps.space && right === gaps.dash);
    if (isPrinted || left === gaps.slash) return this.#span(run, start, area + 2);
    // With spaces alone it may be a row of numbers.
    const isAlone = before === 0 && after === 0 && isNanpArea(run, area);
    return isAlone || this.#hasPhoneLabel(run, first) ? this.#span(run, start, area + 2) : undefined;
  }

  #hasPhoneLabel(run: NumberRun, first: number): boolean {
    const start = run.start(first);
    return PHONE_LABEL_END.test(run.text.charAt(start - 1)) && PHONE_LABEL.test(wordsBefore(run.text, start));
  }

  /**
   * A number as it is dialled inside a region: a configured region, or any known one if the number has a trunk prefix or a label.
   */
  #national(run: NumberRun, first: number): Span | undefined {
    const before = run.gap(first - 1);
    if (!isLoose(before) || run.digitsOf(first, run.count - 1) < DIGITS_MIN) return undefined;
    const hasTrunk = run.text.charCodeAt(run.start(first)) === 0x30;
    const isBracketed = run.gap(first) === gaps.close && run.text.charAt(run.start(first) - 1) === '(';
    const isMine = this.#hasOthers && (run.gap(first) !== 0 || hasTrunk);
    const isPrinted = isBracketed || (hasTrunk && hasPrintedGroups(run, first));
    // A label directly precedes the number.
    const isCalled = before === 0 && this.#hasPhoneLabel(run, first);
    if ((!isMine && !isPrinted && !isCalled) || isDate(run, first)) return undefined;
    if (!isCalled && OTHER_LABEL.test(wordsBefore(run.text, run.start(first)))) return undefined;
    const regions = isCalled || isPrinted ? [...this.#regions, ...KNOWN_REGIONS] : this.#regions;
    let last = first;
    while (run.gap(last) !== 0 && run.digitsOf(first, last + 1) < PHONE_DIGITS_MAX) last += 1;
    for (; last >= first; last -= 1) {
      const digits = run.digitsOf(first, last);
      if (digits < (isCalled ? DIGITS_MIN : DIGITS_MIN + 2)) return undefined;
      const isApart = isLoose(run.gap(last)) && isEnd(run.text, run.end(last));
      if (!isApart) continue;
      const number = run.number(first, last);
      const hasIt = (region: string) =>
        (isCalled || !isPrinted || isBracketed || this.#plans.prefixOf(region) === '0') &&
        this.#plans.isNational(number, region);
      if (regions.some(hasIt)) return this.#span(run, run.start(first), last);
    }
    return undefined;
  }
}

/** Whether digits are grouped like a number with a trunk prefix: not like a Social Security number or part of a longer sequence. */
function hasPrintedGroups(run: NumberRun, first: number): boolean {
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
