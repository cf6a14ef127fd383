import { findAddresses } from '../../guardrails/entities/addresses.ts';
import { type Analyzer, AnalyzerFailed, type Entity } from '../../guardrails/entities/analyzer.ts';
import { canHoldEntity, merged } from '../../guardrails/entities/entities.ts';
import { limits } from '../../limits.ts';
import { ServiceFailed, type Services } from '../../providers/transport/services.ts';
import { parseServiceJson } from '../../schemas/json-structure.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
import type { PresidioSettings } from '../../schemas/presidio.ts';

/** Concurrent requests to an analyzer. */
export const ANALYZER_REQUESTS_AT_ONCE = 4;
/** An analyzer's answer for one text. */
export const ANALYZER_ANSWER_BYTES_MAX = 8 * 1024 * 1024;

/** Entity names of Presidio and the models that it runs (https://microsoft.github.io/presidio/supported_entities/). */
const SLUGS: Readonly<Record<string, Entity['slug']>> = lookupTable({
  PERSON: 'person-name',
  PER: 'person-name',
  LOCATION: 'address',
  LOC: 'address',
  GPE: 'address',
  ADDRESS: 'address',
  STREET_ADDRESS: 'address',
});

/**
 * An analyzer with the API of Presidio (https://microsoft.github.io/presidio/api-docs/api-docs.html), one request a text. Its locations
 * are merged with the street addresses beside them, which the gateway finds itself.
 */
export function createPresidioAnalyzer(
  services: Pick<Services, 'ask'>,
  { base_url, api_key, language, score_min }: PresidioSettings,
): Analyzer {
  async function ask(text: string, signal: AbortSignal): Promise<Entity[]> {
    const answer = await services.ask({
      url: `${base_url}/analyze`,
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        ...(api_key === undefined ? {} : { authorization: `Bearer ${api_key}` }),
      },
      body: JSON.stringify({ text, language, entities: ['PERSON', 'LOCATION'], score_threshold: score_min }),
      bytes_max: ANALYZER_ANSWER_BYTES_MAX,
      timeout_ms: limits.analysis_ms_max,
      signal,
    });
    if (answer.status !== 200) throw new AnalyzerFailed(`it answered with status ${answer.status}`);
    return merged(text, [...entitiesOf(text, answer.body, score_min), ...findAddresses(text)]);
  }

  return {
    async analyze(texts, signal) {
      const stopping = new AbortController();
      const stopped = signal === undefined ? stopping.signal : AbortSignal.any([signal, stopping.signal]);
      stopped.throwIfAborted();
      const entities: Entity[][] = texts.map(() => []);
      const places = [...texts.keys()].filter((at) => canHoldEntity(texts[at] ?? ''));
      const chars = places.reduce((sum, at) => sum + (texts[at]?.length ?? 0), 0);
      if (chars > limits.analyzed_chars_max) throw new AnalyzerFailed('there is too much to read');
      const next = places.values();
      const work = async () => {
        for (const at of next) entities[at] = await ask(texts[at] ?? '', stopped);
      };
      try {
        await Promise.all(Array.from({ length: ANALYZER_REQUESTS_AT_ONCE }, work));
      } catch (error) {
        stopping.abort();
        if (error instanceof ServiceFailed) throw new AnalyzerFailed(error.message, { cause: error });
        throw error;
      }
      return entities;
    },
    async stop() {},
  };
}

interface ReportedEntity {
  start: number;
  end: number;
  score: number;
  entity_type: string;
}

function isReportedEntity(value: unknown): value is ReportedEntity {
  if (typeof value !== 'object' || value === null) return false;
  const { start, end, score, entity_type } = value as Partial<Record<keyof ReportedEntity, unknown>>;
  return (
    Number.isSafeInteger(start) &&
    Number.isSafeInteger(end) &&
    typeof score === 'number' &&
    typeof entity_type === 'string'
  );
}

/** The entities of an answer. Its offsets count code points, of which some are two UTF-16 units. */
function entitiesOf(text: string, body: Buffer, scoreMin: number): Entity[] {
  const invalid = 'its answer is not a list of entities';
  let answer: unknown;
  try {
    answer = parseServiceJson(body.toString('utf8'));
  } catch {
    throw new AnalyzerFailed(invalid);
  }
  if (!Array.isArray(answer) || !answer.every(isReportedEntity)) throw new AnalyzerFailed(invalid);
  const unitOf = unitsOf(text);
  return answer.flatMap(({ start, end, score, entity_type }) => {
    const slug = Object.hasOwn(SLUGS, entity_type) ? SLUGS[entity_type] : undefined;
    if (slug === undefined || score < scoreMin) return [];
    const from = unitOf(start);
    const to = unitOf(end);
    if (from === undefined || to === undefined || from >= to)
      throw new AnalyzerFailed('it reported positions outside the text');
    return [{ start: from, end: to, slug }];
  });
}

/** Converts the index of a code point to that of its first UTF-16 unit; undefined if the text has no such code point. */
function unitsOf(text: string): (character: number) => number | undefined {
  if (!/[\ud800-\udfff]/.test(text))
    return (character) => (character >= 0 && character <= text.length ? character : undefined);
  const units: number[] = [];
  let unit = 0;
  for (const character of text) {
    units.push(unit);
    unit += character.length;
  }
  units.push(unit);
  return (character) => units[character];
}
