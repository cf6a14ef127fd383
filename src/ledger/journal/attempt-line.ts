import type { JournalRecord } from '../records.ts';
import { type ContextFields, type ContextValues, contextFor, contextOf, type RecordContext } from './record-context.ts';
import { attemptOf, attemptValues, list, present } from './record-values.ts';

/** Contexts of one file that are remembered. A forgotten one is defined again. */
const CONTEXTS_OF_FILE_MAX = 2_000;

/** The journal's record of an attempt. */
export type AttemptEntry = Extract<JournalRecord, { t: 'A' }>;

/**
 * The values of an attempt's record that are not in its context. Values that are rarely set come last: undefined ones at the end
 * are left out.
 */
function entryValues({ attempt, endpoint, hold, grant_nano, mode, is_byok = false, least, record }: AttemptEntry) {
  return list(
    record.id,
    record.request_id,
    record.created_at,
    attempt,
    hold,
    grant_nano,
    mode,
    least,
    record.num_media_prompt ?? undefined,
    record.num_input_audio_prompt ?? undefined,
    record.external_user ?? undefined,
    record.session_id ?? undefined,
    record.attempts.length === 0 ? undefined : record.attempts.map(attemptValues),
    record.fees,
    endpoint === record.endpoint_id ? undefined : endpoint,
    is_byok === record.is_byok ? undefined : is_byok,
    record.tags,
  );
}

type EntryValues = ReturnType<typeof entryValues>;

/** An attempt's line as it is parsed: `c` names a context, `d` is its definition. */
export interface AttemptLine {
  t: 'A';
  c?: number;
  v: EntryValues;
  d?: ContextValues;
}

/** Encodes the attempts of one file. The common values of calls are defined once; later lines name them by a number. */
export class AttemptLines {
  readonly #numbers = new Map<RecordContext, number>();

  /** The line of an attempt in parts. */
  lineOf(entry: AttemptEntry): string[] {
    const context = contextFor(entry.record);
    const values = JSON.stringify(entryValues(entry));
    const known = this.#numbers.get(context);
    if (known !== undefined) return ['{"t":"A","c":', String(known), ',"v":', values, '}'];
    if (this.#numbers.size >= CONTEXTS_OF_FILE_MAX) this.#numbers.clear();
    const number = this.#numbers.size;
    this.#numbers.set(context, number);
    return ['{"t":"A","c":', String(number), ',"v":', values, ',"d":', context.text, '}'];
  }

  /** A new file begins, or lines were not written: everything is defined again. */
  clear(): void {
    this.#numbers.clear();
  }
}

/** The line of an attempt that can be read without any other line of its file. */
export function wholeAttemptLine(entry: AttemptEntry): string {
  return `{"t":"A","v":${JSON.stringify(entryValues(entry))},"d":${contextFor(entry.record).text}}`;
}

/** The context of a line; undefined if neither it nor an earlier one defines it. */
function contextIn({ c, d }: AttemptLine, contexts: Map<number, ContextFields>): ContextFields | undefined {
  if (d === undefined) return c === undefined ? undefined : contexts.get(c);
  const defined = contextOf(d);
  if (c !== undefined) contexts.set(c, defined);
  return defined;
}

/**
 * The attempt in a line. `contexts`: those that earlier lines of the file define, by number; takes that of this one. Undefined
 * if the definition of its context is missing, as it is in a damaged file.
 */
export function attemptIn(line: AttemptLine, contexts: Map<number, ContextFields>): AttemptEntry | undefined {
  const context = contextIn(line, contexts);
  if (context === undefined) return undefined;
  const [id, requestId, createdAt, attempt, hold, grantNano, mode, least, media, audio, user, session, ...rest] =
    line.v;
  const [attempts, fees, endpoint, isByok, tags] = rest;
  return {
    t: 'A',
    id,
    attempt,
    endpoint: endpoint ?? context.endpoint_id ?? '',
    ...present({ hold, grant_nano: grantNano, mode, least }),
    is_byok: isByok ?? context.is_byok,
    record: {
      id,
      request_id: requestId,
      created_at: createdAt,
      ...context,
      external_user: user ?? null,
      session_id: session ?? null,
      num_media_prompt: media ?? null,
      num_input_audio_prompt: audio ?? null,
      attempts: attempts?.map(attemptOf) ?? [],
      ...present({ fees, tags }),
    },
  };
}
