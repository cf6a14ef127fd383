import { isDigit } from './chars.ts';
import { cardAt } from './credit-card.ts';
import { emailAt, emailHeldFrom } from './email.ts';
import { endOrigin, fold, originOf } from './fold.ts';
import { ibanEnd } from './iban.ts';
import { ipv4At, ipv6At, ipv6HeldFrom } from './ip-address.ts';
import { isGapChar, NumberRun } from './number-run.ts';
import { type NumberingPlans, readNumberingPlans } from './numbering-plans.ts';
import { PhoneFinder } from './phone.ts';
import { ssnAt } from './ssn.ts';

/** Built-in filters that match by characters alone, in one scan. */
export const scannedSlugs = ['email', 'phone', 'ssn', 'credit-card', 'ip-address'] as const;
export type ScannedSlug = (typeof scannedSlugs)[number];

/** Called with each match. */
export type OnMatch = (slug: ScannedSlug, start: number, end: number) => void;

const COLON = 0x3a;
const AT = 0x40;
const PLUS = 0x2b;
const OPEN = 0x28;
/** The longest match: an email address (RFC 5321, section 4.5.3.1). */
const TAIL_CHARS = 340;
/** The longest number: the 19 digits of a card with three characters between digits. */
const NUMBER_CHARS_MAX = 80;
const GAP_CHARS_MAX = 3;

let plans: NumberingPlans | undefined;

/** Finds email addresses, telephone numbers, Social Security numbers, payment cards and IP addresses in one pass over a text. */
export class BuiltinScanner {
  readonly #wants: Readonly<Record<ScannedSlug, boolean>>;
  readonly #hasNumbers: boolean;
  readonly #run = new NumberRun();
  readonly #phones: PhoneFinder | undefined;

  constructor(slugs: readonly ScannedSlug[], phoneRegions: readonly string[]) {
    const wants = (slug: ScannedSlug) => slugs.includes(slug);
    this.#wants = {
      email: wants('email'),
      phone: wants('phone'),
      ssn: wants('ssn'),
      'credit-card': wants('credit-card'),
      'ip-address': wants('ip-address'),
    };
    this.#hasNumbers = slugs.some((slug) => slug !== 'email');
    if (!this.#wants.phone) return;
    plans ??= readNumberingPlans();
    this.#phones = new PhoneFinder(plans, phoneRegions);
  }

  /** Reports all matches in a text, with offsets of the text as written. */
  scan(source: string, onMatch: OnMatch): void {
    const folded = fold(source);
    const { text } = folded;
    const report: OnMatch =
      folded.origins === undefined
        ? onMatch
        : (slug, start, end) => onMatch(slug, originOf(folded, start), endOrigin(folded, end, source));
    const { email, 'ip-address': ip } = this.#wants;
    /** End of the last IP address. */
    let addressEnd = 0;
    let lastIbanEnd = 0;
    for (let at = 0; at < text.length; at += 1) {
      const unit = text.charCodeAt(at);
      // Digits, the colon and the at sign are neighbours in ASCII.
      if (unit < 0x30 || unit > AT) continue;
      if (unit < COLON) {
        if (!this.#hasNumbers) continue;
        lastIbanEnd = Math.max(lastIbanEnd, ibanEnd(text, at) ?? 0);
        const end = this.#run.read(text, at);
        this.#numbers(lastIbanEnd, addressEnd, report);
        at = end - 1;
      } else if (unit === AT && email) {
        const span = emailAt(text, at);
        if (span !== undefined) report('email', span.start, span.end);
      } else if (unit === COLON && ip && at >= addressEnd) {
        const span = ipv6At(text, at);
        if (span === undefined) continue;
        report('ip-address', span.start, span.end);
        addressEnd = span.end;
      }
    }
  }

  /** The first offset at which a match could still start or grow when more text follows. */
  heldFrom(source: string): number {
    const base = Math.max(0, source.length - TAIL_CHARS);
    const tail = source.slice(base);
    const isCut = (tail.charCodeAt(tail.length - 1) & 0xfc00) === 0xd800;
    const folded = fold(isCut ? tail.slice(0, -1) : tail);
    const { text } = folded;
    let from = text.length;
    if (this.#wants.email) from = Math.min(from, emailHeldFrom(text));
    if (this.#hasNumbers) from = Math.min(from, numberHeldFrom(text));
    if (this.#wants['ip-address']) from = Math.min(from, ipv6HeldFrom(text));
    // A match may start within an unfinished one: a number in a name.
    return base + (from === text.length ? tail.length - (isCut ? 1 : 0) : originOf(folded, from));
  }

  #numbers(lastIbanEnd: number, addressEnd: number, report: OnMatch): void {
    const run = this.#run;
    const digits = run.digits();
    if (digits < 4) return;
    const wants = this.#wants;
    const [ssn, card] = [wants.ssn && digits >= 9, wants['credit-card'] && digits >= 12];
    const [phone, ip] = [this.#phones !== undefined && digits >= 7, wants['ip-address'] && run.count > 3];
    if (!ssn && !card && !phone && !ip) return;
    let [cardEnd, phoneEnd] = [0, 0];
    for (let index = 0; index < run.count; index += 1) {
      const start = run.start(index);
      if (ip && start >= addressEnd) {
        const span = ipv4At(run, index);
        if (span !== undefined) report('ip-address', span.start, span.end);
      }
      if (start < lastIbanEnd) continue;
      if (ssn) {
        const span = ssnAt(run, index);
        if (span !== undefined) report('ssn', span.start, span.end);
      }
      // A match within another of its kind is a part of it.
      if (card) {
        const span = cardAt(run, index);
        if (span !== undefined && span.end > cardEnd) {
          report('credit-card', span.start, span.end);
          cardEnd = span.end;
        }
      }
      if (phone) {
        const span = this.#phones?.at(run, index);
        if (span !== undefined && span.end > phoneEnd) {
          report('phone', span.start, span.end);
          phoneEnd = span.end;
        }
      }
    }
  }
}

/** The start of a number that may continue after the end of a folded text. */
function numberHeldFrom(text: string): number {
  const least = Math.max(0, text.length - NUMBER_CHARS_MAX);
  const last = text.charAt(text.length - 1);
  // The start of an extension: `555-0100x12`.
  let at = text.length - (last === 'x' || last === 'X' ? 1 : 0);
  let from = text.length;
  for (let gap = 0; at > least && gap <= GAP_CHARS_MAX; at -= 1) {
    const unit = text.charCodeAt(at - 1);
    if (isDigit(unit)) {
      gap = 0;
      from = at - 1;
    } else if (unit === PLUS || isGapChar(unit)) {
      gap += 1;
      if (unit === PLUS || unit === OPEN) from = at - 1;
    } else break;
  }
  return from;
}
