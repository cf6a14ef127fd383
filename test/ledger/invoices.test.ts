/**
 * Golden invoices: recorded exchanges, decoded and charged by the real code, compared with `invoices.txt`, which is
 * written by hand. And for every recording: token classes do not overlap, and add up to the totals that the provider
 * reported.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { buildCatalog } from '../../src/catalog/catalog.ts';
import type { Endpoint } from '../../src/catalog/model.ts';
import { declaredPricing } from '../../src/config/pricing.ts';
import type { ReadFile } from '../../src/config/read-file.ts';
import { readBundledCatalog } from '../../src/config.ts';
import { priceAttempt } from '../../src/inference/money/attempt-cost.ts';
import { amountAtto } from '../../src/ledger/prices/charge.ts';
import type { ChatDialect } from '../../src/providers/dialect.ts';
import { dialects } from '../../src/providers/dialects.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { providerRows } from '../../src/providers/table.ts';
import { createFramer } from '../../src/providers/transport/frames.ts';
import type { Candidate } from '../../src/routing/plan.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { ChatCompletion, TokenClasses, Wire } from '../../src/schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { inputTokens, outputTokens } from '../../src/schemas/usage.ts';
import { messagesBytes, SPLICED } from '../readings/anthropic-messages.ts';
import { converseBytes, isClaude, readConverse, readConverseStream } from '../readings/bedrock-converse.ts';
import { cohereBytes, readCohere } from '../readings/cohere-chat.ts';
import { geminiBytes, LIVE, readGemini } from '../readings/gemini-generate-content.ts';
import { chatBytes } from '../readings/openai-chat.ts';
import { NO_ANSWER, readResponses, responsesBytes } from '../readings/openai-responses.ts';
import {
  isComplete,
  type NamedRecording,
  object,
  type Recording,
  recordingsOf,
  whySkipped,
} from '../readings/recordings.ts';

// ---------------------------------------------------------------- the invoices by hand

interface Invoice {
  folder: string;
  file: string;
  provider: string;
  model: string;
  /** Prices that the catalog does not have, USD per million. */
  prices: Record<string, number> | undefined;
  /**
   * Class, units, millionths of a USD per unit, millionths of a USD in all, and the other model if another one was
   * used.
   */
  lines: [string, number, string, string, string | undefined][];
  nano: number;
  reported_usd: string | undefined;
}

const LINE = /^ {2}(\w+) +([\d,]+) x ([\d.]+) += ([\d.]+)(?: \((.+)\))?$/;
const TOTAL = /^ {2}total ([\d.]+), ([\d,]+) nano-USD(?:, told ([\d.]+) USD)?$/;
const whole = (text: string) => Number(text.replaceAll(',', ''));

function readInvoice(text: string): Invoice {
  const [path = '', by = '', ...rest] = text.split('\n');
  const [, folder = '', file = ''] = /^([^/]+)\/(.+\.json)$/.exec(path)!;
  const [, provider = '', model = '', at] = /^(\S+) (\S+)(?: at (.+))?$/.exec(by)!;
  const total = TOTAL.exec(rest.pop()!)!;
  const lines = rest.map((line): Invoice['lines'][number] => {
    const [, name = '', units = '', price = '', amount = '', other] = LINE.exec(line)!;
    return [name, whole(units), price, amount, other];
  });
  const prices = at === undefined ? undefined : at.split(', ').map((one) => one.split(' '));
  return {
    folder,
    file,
    provider,
    model,
    prices: prices && Object.fromEntries(prices.map(([name, usd]) => [name, Number(usd)])),
    lines,
    nano: whole(total[2]!),
    reported_usd: total[3],
  };
}

const invoices = readFileSync(new URL('./invoices.txt', import.meta.url), 'utf8')
  .replace(/^#.*\n/gm, '')
  .trim()
  .split('\n\n')
  .map(readInvoice);

/** Millionths of a USD in 10^-18 USD. */
function atto(millionths: string): bigint {
  const [units = '', fraction = ''] = millionths.split('.');
  return BigInt(units + fraction.padEnd(12, '0'));
}

// ---------------------------------------------------------------- the invoices of the code

const NO_FILE = { wrong: (_path: unknown, expectation: string) => new Error(expectation) } as unknown as ReadFile;

const providers = providerRows.map((row) => ({ ...row, data_policy: {}, headers: {} }) as unknown as Provider);
const catalog = buildCatalog({
  bundled: readBundledCatalog(),
  config: { bundled_catalog: true, models: [] },
  // A provider of a wire without a dialect is charged as well.
  providers,
  created_default: 0,
});

function candidateOf({ provider, model, prices }: Invoice): Candidate {
  const known = catalog.endpoints().find((one) => one.provider === provider && one.upstream_model === model);
  const endpoint = prices === undefined ? known : (declaredPricing(NO_FILE, [], prices) as Partial<Endpoint>);
  if (endpoint?.pricing === undefined) throw new Error(`the catalog has no price of ${model} at ${provider}`);
  return { endpoint, provider: { slug: provider } } as Candidate;
}

function pricesOf(provider: string, model: string) {
  return catalog.endpoints().find((one) => one.provider === provider && one.upstream_model === model);
}

const wireOf = (folder: string): Wire => (folder === 'reference-gateway' ? 'openai-chat' : (folder as Wire));

const BYTES: Record<Wire, (recording: Recording) => Uint8Array> = {
  'openai-chat': chatBytes,
  'openai-responses': responsesBytes,
  'anthropic-messages': messagesBytes,
  'gemini-generate-content': geminiBytes,
  'bedrock-converse': converseBytes,
  'cohere-chat': cohereBytes,
};

function decode(dialect: ChatDialect, recording: Recording): ChatCompletion {
  const state = { generation_id: 'gen-recorded' };
  if (recording.response.json !== undefined)
    return accumulate(dialect.decodeResponse(recording.response.json, state), 0);
  const framer = createFramer(dialect.frames);
  const decoder = dialect.createStreamDecoder(state);
  const frames = [...framer.push(BYTES[dialect.wire](recording)), ...framer.end()];
  return accumulate([...frames.flatMap((frame) => decoder.push(frame)), ...decoder.end()], 0);
}

// ---------------------------------------------------------------- invoices

describe('the arithmetic of the invoices', () => {
  test.each(invoices)('$file: lines and total match', ({ lines, nano, reported_usd: reportedUsd }) => {
    for (const [, units, price, amount] of lines) expect(BigInt(units) * atto(price)).toBe(atto(amount));
    const sum = lines.reduce((total, [, , , amount]) => total + atto(amount), 0n);
    expect(BigInt(nano)).toBe((sum + 999_999_999n) / 1_000_000_000n);
    if (reportedUsd !== undefined) expect(Number(reportedUsd).toFixed(9)).toBe((nano / 1e9).toFixed(9));
  });
});

const folders = [...new Set(invoices.map(({ folder }) => folder))];

describe.each(folders)('%s', (folder) => {
  const recordings = new Map(recordingsOf(folder).map(({ name, recording }) => [name, recording]));
  const own = invoices.filter((invoice) => invoice.folder === folder && recordings.has(invoice.file));
  const dialect = dialects.get(wireOf(folder));
  const why =
    dialect === undefined ? ' (skipped: there is no dialect of this wire yet)' : whySkipped([...recordings], folder);

  test.skipIf(why !== '').each(own)(`$file${why}`, (invoice) => {
    const completion = decode(dialect!, recordings.get(invoice.file)!);
    const { usage = null } = completion.ext;
    const charge = priceAttempt(usage, { messages: [] }, candidateOf(invoice), { pricesOf }, completion.service_tier);
    const lines = charge.lines.map((line) => {
      const price = BigInt(line.unit_price_pico) * 1_000_000n;
      return [line.class, line.units, price, amountAtto(line), line.model];
    });
    expect(lines).toEqual(
      invoice.lines.map(([name, units, price, amount, other]) => [name, units, atto(price), atto(amount), other]),
    );
    expect(charge.cost_nano).toBe(invoice.nano);
  });
});

test.runIf(isComplete)(
  `every recorded provider has an invoice, streamed and not${whySkipped(recordingsOf('openai-chat'), 'openai-chat')}`,
  () => {
    const family = (folder: string, { provider, stream }: Recording) =>
      `${folder} ${provider} ${stream ? 'stream' : 'whole'}`;
    const recorded = new Map<string, string>();
    for (const wire of dialects.keys()) {
      for (const { name, recording } of recordingsOf(wire)) {
        if (recording.response.status === 200) recorded.set(`${wire}/${name}`, family(wire, recording));
      }
    }
    const invoiced = new Set(invoices.map(({ folder, file }) => recorded.get(`${folder}/${file}`)));
    expect([...new Set(recorded.values())].filter((one) => !invoiced.has(one))).toEqual([]);
  },
);

// ---------------------------------------------------------------- classes

/** The last usage object that a provider sent, unchanged. */
function reportedUsage({ response: { json, text, events } }: Recording): JsonObject {
  let last: JsonObject = {};
  const walk = (value: JsonValue | undefined): void => {
    if (Array.isArray(value)) value.forEach(walk);
    else {
      for (const [name, member] of Object.entries(object(value))) {
        // Fields that a later event omits keep the value of an earlier one.
        if (name === 'usage' && member !== null) last = { ...last, ...object(member) };
        else walk(member);
      }
    }
  };
  const data = (text ?? '').split('\n').flatMap((line) => (line.startsWith('data: {') ? [line.slice(6)] : []));
  walk(json);
  const usages = [...data, ...(events ?? [])].map((event) =>
    typeof event === 'string' && event.startsWith('{') ? (JSON.parse(event) as JsonValue) : event,
  );
  // Some recordings hold several answers one after the other, of which the first is read.
  const end = usages.findIndex((event) => object(event)['type'] === 'message_stop');
  walk(end === -1 ? usages : usages.slice(0, end));
  return last;
}

const count = (value: JsonValue | undefined) => (typeof value === 'number' ? value : 0);

/** The reported input and output totals; undefined if the provider reports none. */
function totals(wire: Wire, recording: Recording): [number, number] | undefined {
  switch (wire) {
    case 'bedrock-converse': {
      const { json } = recording.response;
      const isClaudeModel = isClaude(recording);
      const { tokens } =
        json === undefined
          ? readConverseStream(converseBytes(recording), isClaudeModel)
          : readConverse(object(json), isClaudeModel);
      const { input, read = 0, written = 0, output = 0 } = tokens;
      return input === undefined ? undefined : [input + read + written, output];
    }
    case 'cohere-chat': {
      const { input, output } = readCohere(recording);
      return [input, output];
    }
    case 'gemini-generate-content': {
      const { tokens } = readGemini(recording);
      return tokens && [tokens.prompt, tokens.completion];
    }
    case 'openai-responses': {
      const { input, output } = readResponses(recording).tokens;
      return [input, output];
    }
  }
  const usage = reportedUsage(recording);
  if (Object.keys(usage).length === 0) return undefined;
  if (wire === 'anthropic-messages') {
    const { input_tokens, cache_read_input_tokens, cache_creation_input_tokens, output_tokens } = usage;
    return [
      count(input_tokens) + count(cache_read_input_tokens) + count(cache_creation_input_tokens),
      count(output_tokens),
    ];
  }
  const { prompt_tokens, completion_tokens, total_tokens } = usage;
  return [count(prompt_tokens), Math.max(count(completion_tokens), count(total_tokens) - count(prompt_tokens))];
}

/** Usage at other places, and an answer that ends in an error. */
const UNLIKE: ReadonlySet<string> = new Set([
  'groq--test-groq-test-groq-model-web-search-tool-stream-0.json',
  'reference-gateway--test-openrouter-test-openrouter-stream-error-0.json',
]);

const everyFolder = [...dialects.keys(), 'reference-gateway'];

function answersOf(folder: string): NamedRecording[] {
  return recordingsOf(folder).filter(
    ({ name, recording: { request, response } }) =>
      response.status === 200 &&
      !SPLICED.has(name) &&
      !UNLIKE.has(name) &&
      !LIVE.has(name) &&
      !(name in NO_ANSWER) &&
      (folder !== 'reference-gateway' || request?.path.endsWith('/chat/completions')),
  );
}

/** The classes with a count in an answer. */
function classesOf({ counts, extra, estimated, ...classes }: TokenClasses): string[] {
  return Object.entries(classes).flatMap(([name, units]) => (typeof units === 'number' && units > 0 ? [name] : []));
}

test.runIf(isComplete)(
  `every class that a recorded provider reports is in an invoice of it, streamed and not${whySkipped(recordingsOf('openai-chat'), 'openai-chat')}`,
  () => {
    const invoiced = new Set<string>();
    const reported = new Set<string>();
    for (const folder of everyFolder) {
      for (const { name, recording } of answersOf(folder)) {
        const family = `${folder} ${recording.provider} ${recording.stream ? 'stream' : 'whole'}`;
        const { usage } = decode(dialects.get(wireOf(folder))!, recording).ext;
        for (const one of classesOf(usage ?? {})) reported.add(`${family} ${one}`);
        const invoice = invoices.find((one) => one.folder === folder && one.file === name);
        for (const [one] of invoice?.lines ?? []) invoiced.add(`${family} ${one}`);
      }
    }
    expect([...reported].filter((one) => !invoiced.has(one))).toEqual([]);
  },
);

describe.each(everyFolder)('%s', (folder) => {
  const wire = wireOf(folder);
  const recordings = answersOf(folder);
  const why = whySkipped(recordings, folder);

  test.skipIf(recordings.length === 0)(`classes add up to the totals in every recorded answer${why}`, () => {
    let reportedCount = 0;
    for (const { name, recording } of recordings) {
      const { ext, choices } = decode(dialects.get(wire)!, recording);
      const reportedTotals = totals(wire, recording);
      if (reportedTotals === undefined) continue;
      reportedCount += 1;
      const usage: TokenClasses = ext.usage ?? {};
      expect.soft([inputTokens(usage), outputTokens(usage)], name).toEqual(reportedTotals);
      const counts = Object.values({ ...usage, counts: 0, extra: 0, estimated: 0 });
      expect
        .soft(
          counts.every((one) => Number.isInteger(one) && one >= 0),
          name,
        )
        .toBe(true);
      expect.soft(choices, name).toHaveLength(1);
    }
    expect(reportedCount).toBeGreaterThan(recordings.length * 0.9);
  });
});
