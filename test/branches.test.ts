/**
 * Only its folder in `src/api` knows a client API, and only `src/providers` knows the wires. Elsewhere the differences
 * between them are data: `ClientProfile` (`schemas/inner.ts`), `WireFacts` and `WorstCase` (`providers/dialect.ts`).
 */
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { embeddingWires } from '../src/providers/embeddings/dialect.ts';
import { transcriptionWires } from '../src/providers/transcription/dialect.ts';
import { wires } from '../src/schemas/inner.ts';

const root = resolve(import.meta.dirname, '..');
const sources = globSync('src/**/*.{ts,js}', { cwd: root })
  .filter((file) => !/\.test\.ts$/.test(file))
  .map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') }));

const quoted = (names: readonly string[]) => new RegExp(`['"\`](?:${names.join('|')})['"\`]`);

/** A wire's name, or the name of its folder. A comparison with it branches on the wire. */
const WIRE_NAMES = quoted([...wires, ...embeddingWires, ...transcriptionWires]);
/** A comparison of a wire with a constant of its name. */
const WIRE_COMPARED = /\b(?:wire|wireOf\([^()]*\)|dialect)\s*[!=]==?\s*(?:[A-Z_]*WIRE\b)|\b[A-Z_]*WIRE\s*[!=]==?/;
/** The folder of one wire in `src/providers`. */
const WIRE_FOLDER = new RegExp(`from '[^']*providers/(?:${wires.join('|')})/`);

/** A comparison of a client API's name or profile, or a table by it. */
const CLIENT_COMPARED =
  /\bclient(?:\.name)?\s*[!=]==?\s*(?!undefined\b|null\b)['"`\w]|\bclient\.name\b|switch \([^)]*\bclient\b|\[[^\]]*\bext\??\.client\b[^\]]*\]|from '[^']*\/api\/[a-z]+\/client\.ts'/;
/** The values of `api_type` for chat in records: they distinguish operations, not client APIs. */
const CLIENT_TYPE = /\bapi_type\s*[!=]==?\s*'(?:completions|responses|messages)'/;

function linesWith(pattern: RegExp, isAllowed: (file: string) => boolean): string[] {
  return sources
    .filter(({ file }) => !isAllowed(file))
    .flatMap(({ file, text }) =>
      text.split('\n').flatMap((line, at) => (pattern.test(line) ? [`${file}:${at + 1}: ${line.trim()}`] : [])),
    );
}

const inFolder =
  (...folders: string[]) =>
  (file: string) =>
    folders.some((folder) => file.startsWith(folder));

describe('a wire', () => {
  test('is named only in src/providers, and in the list of all wires', () => {
    expect(linesWith(WIRE_NAMES, inFolder('src/providers/', 'src/schemas/inner.ts'))).toEqual([]);
  });

  test('is compared only in src/providers', () => {
    expect(linesWith(WIRE_COMPARED, inFolder('src/providers/'))).toEqual([]);
  });

  test('has a folder that only src/providers imports, and a client API of the same name has one that only src/api imports', () => {
    expect(linesWith(WIRE_FOLDER, inFolder('src/providers/', 'src/api/messages/', 'src/api/responses/'))).toEqual([]);
  });
});

describe('a client API', () => {
  test('is compared only in src/api', () => {
    expect(linesWith(CLIENT_COMPARED, inFolder('src/api/', 'src/http/', 'src/storage/'))).toEqual([]);
    expect(linesWith(CLIENT_TYPE, inFolder('src/api/'))).toEqual([]);
  });
});

test.each([
  ["if (wire === 'openai-chat') return;", WIRE_NAMES],
  ["const OF: Partial<Record<Wire, number>> = { 'cohere-chat': 1 };", WIRE_NAMES],
  ['if (ext.wire === CHAT_WIRE) return;', WIRE_COMPARED],
  ['return wireOf(candidate) !== WIRE;', WIRE_COMPARED],
  ["import { modelFacts } from '../providers/gemini-generate-content/model-facts.ts';", WIRE_FOLDER],
  ["const is_own = request.ext?.client === 'messages';", CLIENT_COMPARED],
  ["if (call.request.ext?.client.name === 'chat') return;", CLIENT_COMPARED],
  ['return OWN[request.ext.client];', CLIENT_COMPARED],
  ['return ext.client === messagesClient;', CLIENT_COMPARED],
  ["import { chatClient } from '../api/chat/client.ts';", CLIENT_COMPARED],
  ["return call.api_type === 'messages';", CLIENT_TYPE],
])('the rules do not report %s', (line, pattern) => {
  expect(pattern.test(line)).toBe(true);
});
