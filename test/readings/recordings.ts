/**
 * Recorded exchanges with real providers: a sample of each wire that is checked in, and all of them, which are present beside this
 * checkout, where the second tier runs.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { inTier } from '../tier.ts';

const SAMPLE = new URL('../recordings/', import.meta.url);
const ALL = new URL('../../../shared/transcripts/', import.meta.url);
/** Whether all recordings are read, not the sample alone. */
export const isComplete: boolean = inTier(false, existsSync(ALL));

/** The folder that recordings are read from. */
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

/** How many of something a test must see: so many in all recordings, some of it in the sample. */
export function atLeast(all: number, sample = 1): number {
  return isComplete ? all : sample;
}

/** For the title of what is skipped without recordings. */
export function whySkipped(recordings: readonly unknown[], wire: string): string {
  return recordings.length > 0 ? '' : ` (skipped: ../shared/transcripts/${wire} is absent)`;
}

export function object(value: JsonValue | undefined): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
}

export function array(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value) ? value : [];
}
