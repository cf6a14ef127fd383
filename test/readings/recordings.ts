/**
 * Recorded exchanges with real providers: a checked-in sample of each wire, and the complete set beside this checkout,
 * which the second tier reads.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { inTier } from '../tier.ts';

const SAMPLE = new URL('../recordings/', import.meta.url);
const ALL = new URL('../../../shared/transcripts/', import.meta.url);
/** Whether all recordings are read, and not only the sample. */
export const isComplete: boolean = inTier(false, existsSync(ALL));

/** The folder of the recordings. */
export const recordingsFolder = isComplete ? ALL : SAMPLE;

export interface Recording {
  provider: string;
  stream: boolean;
  request: { method: string; path: string; body: JsonObject | null } | null;
  response: {
    status: number;
    content_type: string;
    json?: JsonValue;
    text?: string;
    /** The decoded payloads of a stream whose framing was not kept. */
    events?: JsonValue[];
  };
}

export interface NamedRecording {
  name: string;
  recording: Recording;
}

/** The recordings of one wire, by file name. */
export function recordingsOf(wire: string): NamedRecording[] {
  const folder = new URL(`${wire}/`, recordingsFolder);
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'));
  return names.map((name) => ({ name, recording: JSON.parse(readFileSync(new URL(name, folder), 'utf8')) }));
}

/** How many cases a test must see at least: this number in all recordings, and some in the sample. */
export function atLeast(all: number, sample = 1): number {
  return isComplete ? all : sample;
}

/** For the title of tests that are skipped without recordings. */
export function whySkipped(recordings: readonly unknown[], wire: string): string {
  return recordings.length > 0 ? '' : ` (skipped: ../shared/transcripts/${wire} is absent)`;
}

export function object(value: JsonValue | undefined): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
}

export function array(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value) ? value : [];
}
