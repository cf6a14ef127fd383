import { isStorable } from '../schemas/text.ts';
import type { GenerationRecord } from './records.ts';

/** What generations are listed by, besides their times and costs: columns of the store, made from the record. */
export interface ListedFacts {
  user_id: string | null;
  model: string;
  requested_model: string;
  provider_name: string | null;
  session_id: string | null;
  /** The title of the application, or else its address. */
  app: string | null;
  finish_reason: string | null;
  streamed: boolean;
  /** Whole milliseconds. */
  latency: number | null;
  /** The failures of the attempts, in their order, with commas between them. */
  failures: string | null;
  /** The names of the guardrails and filters that acted, with commas between them. */
  guardrails: string | null;
}

/** Texts that clients choose are cut at this length, so that an index has room for them. */
const FACT_CHARS_MAX = 256;

/**
 * A text as the store's columns can hold it, cut. PostgreSQL refuses NUL and halves of characters, which records may contain as escapes:
 * a batch with such a text would never be settled.
 */
export function storedFact(text: string): string {
  const kept = text.length > FACT_CHARS_MAX ? text.slice(0, FACT_CHARS_MAX) : text;
  return isStorable(kept) ? kept : kept.toWellFormed().replaceAll('\u0000', '\ufffd');
}

function cut(text: string | null | undefined): string | null {
  return text === null || text === undefined || text === '' ? null : storedFact(text);
}

/** The facts of a record by which it is listed. */
export function listedFactsOf(record: GenerationRecord): ListedFacts {
  const failures: string[] = [];
  for (const { failure } of record.attempts) if (failure !== undefined && failure !== null) failures.push(failure);
  const guardrails = new Set<string>();
  for (const { type, name } of record.routing?.pipeline ?? []) if (type === 'guardrail') guardrails.add(name);
  return {
    user_id: cut(record.user_id),
    model: cut(record.model) ?? '',
    requested_model: cut(record.requested_model) ?? cut(record.model) ?? '',
    provider_name: cut(record.provider_name),
    session_id: cut(record.session_id),
    app: cut(record.title) ?? cut(record.http_referer),
    finish_reason: record.finish_reason,
    streamed: record.streamed,
    latency: record.latency === null ? null : Math.round(record.latency),
    failures: cut(failures.join(',')),
    guardrails: cut([...guardrails].join(',')),
  };
}
