import type { Stage } from '../schemas/routing-metadata.ts';
import { isStorable } from '../schemas/text.ts';
import type { GenerationRecord } from './records.ts';

/** The values by which generations are listed, besides their times and costs: columns of the store, made from the record. */
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
export function storedFact(text: string | null | undefined): string {
  if (text === null || text === undefined) return '';
  const kept = text.length > FACT_CHARS_MAX ? text.slice(0, FACT_CHARS_MAX) : text;
  return isStorable(kept) ? kept : kept.toWellFormed().replaceAll('\u0000', '\ufffd');
}

/** The names of the guardrails that acted, each once; null if none did. */
function guardrailsOf(stages: readonly Stage[]): string | null {
  const names = new Set<string>();
  for (const { type, name } of stages) if (type === 'guardrail') names.add(name);
  return storedFact([...names].join(',')) || null;
}

/** The facts of a record by which it is listed. */
export function listedFactsOf(record: GenerationRecord): ListedFacts {
  const { attempts, routing } = record;
  const model = storedFact(record.model);
  let failures = '';
  // By index: there is an object for each turn of this loop otherwise.
  for (let at = 0; at < attempts.length; at += 1) {
    const { failure } = attempts[at]!;
    if (failure != null) failures += failures === '' ? failure : `,${failure}`;
  }
  return {
    user_id: storedFact(record.user_id) || null,
    model,
    requested_model: storedFact(record.requested_model) || model,
    provider_name: storedFact(record.provider_name) || null,
    session_id: storedFact(record.session_id) || null,
    app: storedFact(record.title || record.http_referer) || null,
    finish_reason: record.finish_reason,
    streamed: record.streamed,
    latency: record.latency === null ? null : Math.round(record.latency),
    failures: failures === '' ? null : storedFact(failures),
    guardrails: routing?.pipeline === undefined ? null : guardrailsOf(routing.pipeline),
  };
}
