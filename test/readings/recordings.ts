/** Recorded exchanges with real providers, where they are present beside this checkout. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';

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

/** All recordings of one wire, by file name; empty where the folder is absent. */
export function recordingsOf(wire: string): NamedRecording[] {
  const folder = new URL(`../../../shared/transcripts/${wire}/`, import.meta.url);
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'));
  return names.map((name) => ({ name, recording: JSON.parse(readFileSync(new URL(name, folder), 'utf8')) }));
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
