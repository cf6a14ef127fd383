import { limits } from '../../limits.ts';
import type { BoundGuardrail } from '../../schemas/guardrail.ts';
import type { Entity } from '../entities/analyzer.ts';
import type { Finding } from '../finding.ts';
import type { ActiveFilter, FilterSet } from '../policy/filter-set.ts';
import { type Numbering, otherId, placeholders, redacted } from '../redaction.ts';
import { type JsonToken, jsonTokens, withLines, withTokens } from '../streams/json-tokens.ts';
import type { Place, Visit } from '../text-places.ts';
import { createScanner, type Pause, SCAN_SLICE_TEXTS, type Scanner } from './scan.ts';

/** A text with findings. */
export interface FoundText extends Place {
  text: string;
  /** All findings that redact or flag, and the first one that blocks. */
  findings: readonly Finding[];
}

/** Why a request is refused. */
export interface Refusal {
  filter: ActiveFilter;
  /** The path of the text in the inner language. */
  field: string;
  /** Families of prompt injection, by name. */
  patterns: readonly string[];
  /** Whether the match of a redacting filter is in a text that cannot be changed. */
  is_pinned: boolean;
}

/** The result of screening a request. */
export interface Screened<T> {
  /** The redacted request, or the same object if nothing is redacted. For a refused request: with the findings so far redacted. */
  subject: T;
  refusal: Refusal | undefined;
  matches: readonly FoundText[];
  /** The new texts of those of `matches` that changed. */
  changed: ReadonlyMap<FoundText, string>;
}

/** Everything that screening needs. */
export interface Screener {
  set: FilterSet;
  guardrails: readonly BoundGuardrail[];
  numbering: Numbering;
  pause: Pause;
  /** Finds entities in texts. Not set if no filter needs it or if it may be skipped. */
  analyze?: ((texts: readonly string[]) => Promise<Entity[][]>) | undefined;
}

/** Visits all texts of a subject and returns it with the results. */
export type Subject<T> = (visit: Visit) => T;

/** Returns whether matches of a filter are restored in the answer. */
export function isReversible(guardrails: readonly BoundGuardrail[]): (filter: ActiveFilter) => boolean {
  const reversible = new Set(guardrails.filter((one) => one.content_filter_reversible === true).map(({ id }) => id));
  return ({ guardrail_id }) => reversible.has(guardrail_id);
}

interface Unit extends Place {
  text: string;
  findings: Finding[];
  /** For JSON text: its strings, names and numbers, each as a text. */
  parts?: Part[];
}

interface Part extends Unit {
  token: JsonToken;
}

/**
 * Checks all texts of a request with the filters of its caller. Redaction is deterministic, so that
 * prompt caches of providers still match.
 */
export async function screen<T>(subject: Subject<T>, screener: Screener): Promise<Screened<T>> {
  const { set, pause } = screener;
  const units: Unit[] = [];
  const visited = subject((text, place) => {
    if (text !== '') units.push({ ...place, text, findings: [] });
    return text;
  });
  /** Passes over very many texts take turns of their own. */
  const betweenPasses = () => (units.length > SCAN_SLICE_TEXTS ? pause() : undefined);
  await betweenPasses();
  const refusal = await findAll(units, screener);
  await betweenPasses();
  const matched = scannedUnits(units).filter(({ findings }) => findings.length > 0);
  const redacts = ({ filter }: Finding) => set.filters[filter]?.action !== 'flag';
  const changing = matched.some(({ findings }) => findings.some(redacts));
  if (!changing) return { subject: visited, refusal, matches: matched, changed: new Map() };
  await betweenPasses();
  await avoidWritten(units, screener);
  const changed = await changesOf(matched, redacts, screener);
  /** The new text of each unit. Undefined if it is unchanged. */
  const results: (string | undefined)[] = [];
  for (const unit of units) {
    results.push(unit.parts === undefined ? changed.get(unit) : jsonOf(unit, unit.parts, changed));
    if (unit.parts !== undefined) await pause();
  }
  await betweenPasses();
  let at = 0;
  const rewritten = subject((text) => (text === '' ? text : (results[at++] ?? text)));
  await betweenPasses();
  return { subject: rewritten, refusal, matches: matched, changed };
}

/** The units as scanned: JSON texts as their parts. */
function scannedUnits(units: readonly Unit[]): Unit[] {
  return units.flatMap((unit): Unit[] => unit.parts ?? [unit]);
}

/** Reserves placeholders that the client wrote itself: they would be restored to another value. */
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

/** The new text of each changed unit. */
async function changesOf(
  matched: readonly Unit[],
  redacts: (finding: Finding) => boolean,
  { set, guardrails, numbering, pause }: Screener,
): Promise<Map<FoundText, string>> {
  const changed = new Map<FoundText, string>();
  const placeholder = placeholders(set.filters, isReversible(guardrails), numbering);
  let work = 0;
  const isAll = set.filters.every(({ action }) => action !== 'flag');
  for (const unit of matched) {
    const findings = isAll ? unit.findings : unit.findings.filter(redacts);
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

/** A JSON text with its changed parts. */
function jsonOf({ text }: Unit, parts: readonly Part[], changed: ReadonlyMap<FoundText, string>): string {
  const replacements = parts.flatMap((part): [JsonToken, string][] => {
    const now = changed.get(part);
    return now === undefined ? [] : [[part.token, now]];
  });
  return replacements.length === 0 ? text : withTokens(text, replacements);
}

/** An escape of JSON, at any depth of nested JSON texts. Begins at the first backslash of a run, so that a long run is read once. */
const UNICODE_ESCAPE = /(?<!\\)\\+u([0-9a-f]{4})/gi;

/** A text without its escapes (JSON or percent encoding). */
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

/** Removes card numbers in the path of a URL: such digits are almost always an id. */
function withoutIds(findings: readonly Finding[], text: string, { filters }: FilterSet): Finding[] {
  const pathChars = ADDRESS.exec(text)?.[0].length ?? 0;
  return findings.filter(({ start, end, filter }) => {
    const isNumber = filters[filter]?.slug === 'credit-card' && /^\d+$/.test(text.slice(start, end));
    return !isNumber || end > pathChars;
  });
}

/** Scans a text as written and without its escapes. */
async function look(unit: Unit, scanner: Scanner, set: FilterSet): Promise<void> {
  const { text, kind } = unit;
  if (text === '') return;
  const scanAs = async (read: string) => {
    const findings = await scanner.find(read);
    return kind === 'pinned' ? withoutIds(findings, read, set) : [...findings];
  };
  unit.findings = await scanAs(text);
  const read = readAs(unit);
  if (read === text) return;
  const findings = await scanAs(read);
  if (findings.length > 0 && findings.length >= unit.findings.length) Object.assign(unit, { text: read, findings });
}

/** Scans the tokens of a JSON text. Text that is not JSON is scanned as written. `keeps`: keep all strings as parts, for the analyzer. */
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
 * Adds matches of patterns over several tokens of a JSON text as written, such as a name with its value: each
 * token that the match covers gets its part of the match. Returns all parts with findings.
 */
async function acrossTokens(
  unit: Unit,
  parts: Part[],
  scanner: Scanner,
  { set: { filters }, pause }: Pick<Screener, 'set' | 'pause'>,
): Promise<Part[]> {
  const isPattern = ({ filter }: Finding) => filters[filter]?.pattern !== undefined;
  if (!filters.some(({ pattern }) => pattern !== undefined)) return parts;
  const crossing = (await scanner.find(withLines(unit.text))).filter(isPattern).sort((a, b) => a.start - b.start);
  if (crossing.length === 0) return parts;
  const known = new Map(parts.map((part) => [part.token.start, part]));
  const result: Part[] = [];
  let open: Finding[] = [];
  let next = 0;
  let count = 0;
  for (const token of jsonTokens(unit.text)) {
    count += 1;
    if (count % limits.scan_findings_max === 0) await pause();
    open = open.filter(({ end }) => end > token.start);
    for (; next < crossing.length && crossing[next]!.start < token.end; next += 1) open.push(crossing[next]!);
    const { field } = unit;
    const part: Part = {
      ...(known.get(token.start) ?? { field, kind: 'text', text: token.text, findings: [] }),
      token,
    };
    for (const finding of open) {
      const reached = reachedOf(finding, token, unit.text);
      if (reached !== undefined) part.findings.push(reached);
    }
    if (part.findings.length > 0 || known.has(token.start)) result.push(part);
  }
  return result;
}

/** The part of a finding in JSON text that covers a token. Undefined if it covers nothing of it or lies within it. */
function reachedOf(finding: Finding, { start, end, text }: JsonToken, json: string): Finding | undefined {
  const quote = json[start] === '"' ? 1 : 0;
  const begin = start + quote;
  if (finding.end <= begin || finding.start >= end - quote || text === '') return undefined;
  if (finding.start >= begin && finding.end <= end - quote) return undefined;
  // Escaped strings and numbers are covered as a whole.
  if (quote === 0 || json.slice(begin, end - quote) !== text) return { ...finding, start: 0, end: text.length };
  return { ...finding, start: Math.max(0, finding.start - begin), end: Math.min(text.length, finding.end - begin) };
}

/** Scans all texts, until one is refused. */
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
    for (const [at, findings] of [...parts].sort(([a], [b]) => a - b)) {
      const unit = run[at]!;
      for (const finding of findings) unit.findings.push(finding);
      const refusal = refusalOf(unit, set);
      if (refusal !== undefined) return refusal;
    }
  }
  if (!analyzes) return undefined;
  const analyzed = scannedUnits(units).filter(({ kind }) => kind === 'text');
  const texts = [...new Set(analyzed.map(({ text }) => text))];
  const entities = await analyze(texts);
  const byText = new Map(texts.map((text, at) => [text, entities[at] ?? []]));
  for (const unit of analyzed) {
    for (const finding of entityFindings(byText.get(unit.text) ?? [], set)) unit.findings.push(finding);
    const refusal = refusalOf(unit, set);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

/** Runs of several texts that a model reads as one. */
function runsOf(units: readonly Unit[]): Unit[][] {
  const runs: Unit[][] = [];
  for (const unit of units) {
    // A JSON text is not part of a run.
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
  // An id can be replaced by another.
  if (kind === 'link') return undefined;
  const isPinned = kind === 'pinned';
  // A text may have millions of findings, which are not searched if none of them can refuse the request.
  if (!isPinned && !filters.some(({ action }) => action === 'block')) return undefined;
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
