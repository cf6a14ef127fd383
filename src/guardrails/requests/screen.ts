import { limits } from '../../limits.ts';
import type { BoundGuardrail } from '../../schemas/guardrail.ts';
import type { Entity } from '../entities/analyzer.ts';
import type { Finding } from '../finding.ts';
import type { ActiveFilter, FilterSet } from '../policy/filter-set.ts';
import { type Numbering, otherId, placeholders, redacted } from '../redaction.ts';
import { type JsonToken, jsonTokens, withLines, withTokens } from '../streams/json-tokens.ts';
import type { Place, Visit } from '../text-places.ts';
import { createScanner, type Pause, type Scanner } from './scan.ts';

/** A text in which something was found. */
export interface FoundText extends Place {
  text: string;
  /** Of those that redact or flag all; of those that block, the first. */
  findings: readonly Finding[];
}

/** Why a request must not go on. */
export interface Refusal {
  filter: ActiveFilter;
  /** Where, in the inner language. */
  field: string;
  /** Families of prompt injection, by name. */
  patterns: readonly string[];
  /** A filter that redacts found it in what cannot be changed. */
  is_pinned: boolean;
}

/** What became of a request. */
export interface Screened<T> {
  /** As it may go on; the given one where nothing is redacted. Of a refused one: with what was found until then redacted. */
  subject: T;
  refusal: Refusal | undefined;
  found: readonly FoundText[];
  /** Those of `found` that are others from now on. */
  changed: ReadonlyMap<FoundText, string>;
}

/** What screening is done with. */
export interface Screener {
  set: FilterSet;
  guardrails: readonly BoundGuardrail[];
  numbering: Numbering;
  pause: Pause;
  /** What an analyzer finds in texts. Absent where no filter needs it, or it may be left out. */
  analyze?: ((texts: readonly string[]) => Promise<Entity[][]>) | undefined;
}

/** Tells all texts of a subject, and gives it with what each is to be. */
export type Subject<T> = (visit: Visit) => T;

/** Whether what a filter redacts comes back in the answer. */
export function isReversible(guardrails: readonly BoundGuardrail[]): (filter: ActiveFilter) => boolean {
  const reversible = new Set(guardrails.filter((one) => one.content_filter_reversible === true).map(({ id }) => id));
  return ({ guardrail_id }) => reversible.has(guardrail_id);
}

interface Unit extends Place {
  text: string;
  findings: Finding[];
  /** Of a text of JSON: what is looked at of what it says, each as a text. */
  parts?: Part[];
}

interface Part extends Unit {
  token: JsonToken;
}

/**
 * Holds all that a request says against the filters of its caller. The same request is always changed in the same way, so that
 * providers' caches know it again.
 */
export async function screen<T>(subject: Subject<T>, screener: Screener): Promise<Screened<T>> {
  const { set, pause } = screener;
  const units: Unit[] = [];
  const given = subject((text, place) => {
    if (text !== '') units.push({ ...place, text, findings: [] });
    return text;
  });
  const refusal = await findAll(units, screener);
  const found = looked(units).filter(({ findings }) => findings.length > 0);
  const redacts = ({ filter }: Finding) => set.filters[filter]?.action !== 'flag';
  const changing = found.some(({ findings }) => findings.some(redacts));
  if (!changing) return { subject: given, refusal, found, changed: new Map() };
  await avoidWritten(units, screener);
  const changed = await changesOf(found, redacts, screener);
  /** What stands in place of each; undefined: it stays. */
  const told: (string | undefined)[] = [];
  for (const unit of units) {
    told.push(unit.parts === undefined ? changed.get(unit) : jsonOf(unit, unit.parts, changed));
    if (unit.parts !== undefined) await pause();
  }
  let at = 0;
  const rewritten = subject((text) => (text === '' ? text : (told[at++] ?? text)));
  return { subject: rewritten, refusal, found, changed };
}

/** The units as they were looked at: of those that were taken apart, what they say. */
function looked(units: readonly Unit[]): Unit[] {
  return units.flatMap((unit): Unit[] => unit.parts ?? [unit]);
}

/** No number is given out that the client wrote itself: what it wrote would be taken for what stands behind the number. */
async function avoidWritten(units: readonly Unit[], { set, guardrails, numbering, pause }: Screener): Promise<void> {
  if (!set.filters.some(isReversible(guardrails))) return;
  const { scan_slice_chars, scan_overlap_chars } = limits;
  let chars = 0;
  for (const { text } of units) {
    for (let at = 0; at < text.length; at += scan_slice_chars) {
      const piece = text.slice(Math.max(0, at - scan_overlap_chars), at + scan_slice_chars);
      numbering.avoid(piece);
      chars += piece.length;
      if (chars < scan_slice_chars) continue;
      chars = 0;
      await pause();
    }
  }
}

/** What each text is from now on. */
async function changesOf(
  found: readonly Unit[],
  redacts: (finding: Finding) => boolean,
  { set, guardrails, numbering, pause }: Screener,
): Promise<Map<FoundText, string>> {
  const changed = new Map<FoundText, string>();
  const placeholder = placeholders(set.filters, isReversible(guardrails), numbering);
  let work = 0;
  for (const unit of found) {
    const findings = unit.findings.filter(redacts);
    if (findings.length === 0) continue;
    work += findings.length;
    if (work > limits.scan_findings_max) {
      work = findings.length;
      await pause();
    }
    const { kind, text } = unit;
    changed.set(unit, kind === 'link' ? otherId(text) : await redacted(text, findings, placeholder, pause));
  }
  return changed;
}

/** A text of JSON as its parts are from now on. */
function jsonOf({ text }: Unit, parts: readonly Part[], changed: ReadonlyMap<FoundText, string>): string {
  const told = parts.flatMap((part): [JsonToken, string][] => {
    const now = changed.get(part);
    return now === undefined ? [] : [[part.token, now]];
  });
  return told.length === 0 ? text : withTokens(text, told);
}

/** Of JSON, at whatever depth of texts within texts. */
const UNICODE_ESCAPE = /\\+u([0-9a-f]{4})/gi;

/** A text as its reader knows it, where it is escaped. */
function readAs({ text, kind }: Unit): string {
  if (kind === 'text' && text.includes('\\u')) {
    return text.replace(UNICODE_ESCAPE, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
  }
  if (kind !== 'pinned' || !text.includes('%') || !ADDRESS.test(text)) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const ADDRESS = /^[a-z][a-z\d+.-]*:\/\/[^?#]*/i;

/** Without what are, in the path of an address, the digits of an id and hardly ever those of a card. */
function withoutIds(findings: readonly Finding[], text: string, { filters }: FilterSet): Finding[] {
  const pathChars = ADDRESS.exec(text)?.[0].length ?? 0;
  return findings.filter(({ start, end, filter }) => {
    const isNumber = filters[filter]?.slug === 'credit-card' && /^\d+$/.test(text.slice(start, end));
    return !isNumber || end > pathChars;
  });
}

/** Finds what a text says as it stands, or else as its reader knows it. */
async function look(unit: Unit, scanner: Scanner, set: FilterSet): Promise<void> {
  const { text, kind } = unit;
  if (text === '') return;
  const told = async (read: string) => {
    const findings = await scanner.find(read);
    return kind === 'pinned' ? withoutIds(findings, read, set) : [...findings];
  };
  unit.findings = await told(text);
  const read = readAs(unit);
  if (read === text) return;
  const findings = await told(read);
  if (findings.length > 0 && findings.length >= unit.findings.length) Object.assign(unit, { text: read, findings });
}

/** Looks at what a text of JSON says, a piece at a time. One that is none is looked at as it stands. `keeps`: strings are looked at again. */
async function takeApart(unit: Unit, scanner: Scanner, { set, pause }: Screener, keeps: boolean): Promise<void> {
  const { text, field } = unit;
  const parts: Part[] = [];
  const tokens = jsonTokens(text);
  let read = tokens.next();
  for (; read.done !== true; read = tokens.next()) {
    const part: Part = { field, kind: 'text', text: read.value.text, findings: [], token: read.value };
    await look(part, scanner, set);
    const isString = text[read.value.start] === '"';
    if (part.findings.length > 0 || (keeps && isString)) parts.push(part);
  }
  if (read.value) {
    unit.parts = await acrossTokens(unit, parts, scanner, { set, pause });
    return;
  }
  unit.kind = 'text';
  await look(unit, scanner, set);
}

/**
 * What patterns find in a text of JSON as it is written, and in none of its strings alone, such as a name with its value: in
 * each string and number that it reaches over, the part that it reaches. Gives all parts in which something was found.
 */
async function acrossTokens(
  unit: Unit,
  parts: Part[],
  scanner: Scanner,
  { set: { filters }, pause }: Pick<Screener, 'set' | 'pause'>,
): Promise<Part[]> {
  const isPattern = ({ filter }: Finding) => filters[filter]?.pattern !== undefined;
  if (!filters.some(({ pattern }) => pattern !== undefined)) return parts;
  const found = (await scanner.find(withLines(unit.text))).filter(isPattern).sort((a, b) => a.start - b.start);
  if (found.length === 0) return parts;
  const known = new Map(parts.map((part) => [part.token.start, part]));
  const told: Part[] = [];
  let open: Finding[] = [];
  let next = 0;
  let count = 0;
  for (const token of jsonTokens(unit.text)) {
    count += 1;
    if (count % limits.scan_findings_max === 0) await pause();
    open = open.filter(({ end }) => end > token.start);
    for (; next < found.length && found[next]!.start < token.end; next += 1) open.push(found[next]!);
    const { field } = unit;
    const part: Part = {
      ...(known.get(token.start) ?? { field, kind: 'text', text: token.text, findings: [] }),
      token,
    };
    for (const finding of open) {
      const reached = reachedOf(finding, token, unit.text);
      if (reached !== undefined) part.findings.push(reached);
    }
    if (part.findings.length > 0 || known.has(token.start)) told.push(part);
  }
  return told;
}

/** Of a finding in a text of JSON, what it reaches of a token; undefined: nothing, or it lies in the token alone. */
function reachedOf(finding: Finding, { start, end, text }: JsonToken, json: string): Finding | undefined {
  const quote = json[start] === '"' ? 1 : 0;
  const begin = start + quote;
  if (finding.end <= begin || finding.start >= end - quote || text === '') return undefined;
  if (finding.start >= begin && finding.end <= end - quote) return undefined;
  // Where something is escaped, or of a number, it is the whole.
  if (quote === 0 || json.slice(begin, end - quote) !== text) return { ...finding, start: 0, end: text.length };
  return { ...finding, start: Math.max(0, finding.start - begin), end: Math.min(text.length, finding.end - begin) };
}

/** Finds what there is, text by text, until one must not go on. */
async function findAll(units: readonly Unit[], screener: Screener): Promise<Refusal | undefined> {
  const { set, pause, analyze } = screener;
  const scanner = createScanner(set, pause);
  const analyzes = set.analyzed.length > 0 && analyze !== undefined;
  for (const unit of units) {
    if (unit.kind === 'json') await takeApart(unit, scanner, screener, analyzes);
    else await look(unit, scanner, set);
    for (const one of unit.parts ?? [unit]) {
      const refusal = refusalOf(one, set);
      if (refusal !== undefined) return refusal;
    }
  }
  for (const run of runsOf(units)) {
    const parts = await scanner.across(run.map(({ text }) => text));
    for (const [at, unit] of run.entries()) {
      for (const finding of parts[at] ?? []) unit.findings.push(finding);
      const refusal = refusalOf(unit, set);
      if (refusal !== undefined) return refusal;
    }
  }
  if (!analyzes) return undefined;
  const told = looked(units).filter(({ kind }) => kind === 'text');
  const texts = [...new Set(told.map(({ text }) => text))];
  const entities = await analyze(texts);
  const byText = new Map(texts.map((text, at) => [text, entities[at] ?? []]));
  for (const unit of told) {
    for (const finding of entityFindings(byText.get(unit.text) ?? [], set)) unit.findings.push(finding);
    const refusal = refusalOf(unit, set);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

/** Texts that a model reads as one, where there are several. */
function runsOf(units: readonly Unit[]): Unit[][] {
  const runs: Unit[][] = [];
  for (const unit of units) {
    // What is JSON by itself is no piece of something else.
    if (unit.run === undefined || unit.parts !== undefined) continue;
    const open = runs.at(-1);
    if (open?.[0]?.run === unit.run) open.push(unit);
    else runs.push([unit]);
  }
  return runs.filter((run) => run.length > 1);
}

function entityFindings(entities: readonly Entity[], { filters, analyzed }: FilterSet): Finding[] {
  return entities.flatMap(({ start, end, slug }) => {
    const filter = analyzed.find((index) => filters[index]?.slug === slug);
    return filter === undefined ? [] : [{ start, end, filter }];
  });
}

function refusalOf({ findings, kind, field }: Unit, { filters }: FilterSet): Refusal | undefined {
  // An id may be another.
  if (kind === 'link') return undefined;
  const isPinned = kind === 'pinned';
  const refuses = ({ filter }: Finding) => {
    const action = filters[filter]?.action;
    return action === 'block' || (isPinned && action === 'redact');
  };
  const first = findings.find((finding) => filters[finding.filter]?.action === 'block') ?? findings.find(refuses);
  if (first === undefined) return undefined;
  const filter = filters[first.filter]!;
  const named = findings.flatMap(({ filter: index, pattern }) => (index === first.filter && pattern ? [pattern] : []));
  return { filter, field, patterns: [...new Set(named)].sort(), is_pinned: isPinned && filter.action === 'redact' };
}
