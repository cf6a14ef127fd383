/**
 * Recorded answers of real providers, read through the gateway by the Vercel AI SDK with each of its packages. The
 * expected content is the gateway's plain chat answer, which tests of each wire compare with the recorded bytes.
 */
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenRouter } from '@openrouter/ai-sdk-provider';
import { generateText, type LanguageModel, type ModelMessage, type StepResult, streamText, type ToolSet } from 'ai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ClientReading } from '../readings/client.ts';
import { whySkipped } from '../readings/recordings.ts';
import {
  chatReading,
  type RecordedGateway,
  recordedAnswers,
  startRecordedGateway,
} from '../wires/recorded-upstream.ts';
import { partsOf, takeWarnings } from './ai-sdk-rules.ts';
import { refuseWarnings, wires } from './sdk-gateway.ts';

const all = wires.flatMap((wire) => recordedAnswers(wire));
let recorded: RecordedGateway;

beforeAll(async () => {
  recorded = await startRecordedGateway(all);
});
afterAll(() => recorded.stop());
refuseWarnings();

function settings() {
  return { baseURL: recorded.gateway.base_url, apiKey: recorded.gateway.key };
}

interface Package {
  model(name: string): LanguageModel;
  providerOptions?: NonNullable<Parameters<typeof generateText>[0]['providerOptions']>;
  /** Options that enable reasoning in a further turn. Not set: this package keeps no state of it. */
  thinking?: NonNullable<Parameters<typeof generateText>[0]['providerOptions']>;
  /** The reasoning that the package shows. Not set: none. */
  thoughts?(reading: ClientReading): string;
}

const readable = ({ reasoning }: ClientReading) => reasoning;

/** Of its own API this package reads only summaries. */
function summaries({ details }: ClientReading): string {
  const shown = details.filter(
    ({ type, format }) => type !== 'reasoning.text' || !String(format).endsWith('-responses-v1'),
  );
  return shown.map(({ text, summary }) => String(text ?? summary ?? '')).join('');
}

const packages: Record<string, Package> = {
  'openai.chat()': { model: (name) => createOpenAI(settings()).chat(name) },
  'openai()': {
    model: (name) => createOpenAI(settings())(name),
    providerOptions: { openai: { store: false, reasoningSummary: 'auto', forceReasoning: true } },
    thinking: { openai: { store: false, reasoningEffort: 'low', forceReasoning: true } },
    thoughts: summaries,
  },
  'anthropic()': {
    model: (name) => createAnthropic(settings())(name),
    thinking: { anthropic: { thinking: { type: 'adaptive' } } },
    thoughts: readable,
  },
  'openrouter()': {
    model: (name) => createOpenRouter({ ...settings(), compatibility: 'strict' })(name),
    thinking: { openrouter: { reasoning: { effort: 'low' } } },
    thoughts: readable,
  },
};

/**
 * The id of a call in a form that two answers to one recording share: some wires have none, and one is made for each
 * answer. Messages clients see ids that they would not accept in another form.
 */
function callId(id: string): string {
  const shown = id.startsWith('gwid_') ? Buffer.from(id.slice('gwid_'.length), 'base64url').toString() : id;
  return /^call_[0-9A-Za-z]{24}$/.test(shown) ? 'made' : shown;
}

/** Parts with state that only their provider can read. */
const OPAQUE = /"(?:signature|thoughtSignature|encrypted_content|data|redactedContent)": ?"/;

/** This package shows the summary of a compaction as text, and adds its tokens to those of the answer. */
const COMPACTED = 'anthropic--events-anthropic-compaction-1.json';

interface StepSummary {
  text: string;
  calls: [id: string, name: string, input: unknown][];
  reasoning: string;
  finish: string;
  tokens: unknown[];
}

const OWN_TOOLS = new Set(['tool_search', 'local_shell', 'shell', 'mcp']);

function summaryOf({ text, toolCalls, reasoningText, finishReason, usage }: StepResult<ToolSet>): StepSummary {
  return {
    text,
    // Without the provider's own calls and its own tools that the client would run: chat has no place for those.
    calls: toolCalls
      .filter(({ toolName, providerExecuted }) => providerExecuted !== true && !OWN_TOOLS.has(toolName))
      .map(({ toolCallId, toolName, input }) => [
        callId(toolCallId),
        toolName,
        typeof input === 'string' ? { input } : input,
      ]),
    // Each package joins paragraphs of it in its own way.
    reasoning: (reasoningText ?? '').replaceAll('\n', ''),
    finish: finishReason,
    tokens: [usage.inputTokens, usage.outputTokens],
  };
}

const FINISHES: Readonly<Record<string, string>> = { tool_calls: 'tool-calls', content_filter: 'content-filter' };

function wanted(reading: ClientReading, { thoughts }: Package): StepSummary {
  const { text, calls, finish, usage } = reading;
  return {
    text,
    calls: calls.map(({ id, name, arguments: input }) => [callId(id), name, JSON.parse(input)]),
    reasoning: (thoughts?.(reading) ?? '').replaceAll('\n', ''),
    finish: FINISHES[String(finish)] ?? String(finish),
    tokens: [usage['prompt_tokens'], usage['completion_tokens']],
  };
}

describe.each(Object.entries(packages))('%s', (packageName, one) => {
  const { model, providerOptions = {} } = one;
  const optionsFor = (name: string) => ({
    model: model(name),
    prompt: 'Go on.',
    maxRetries: 0,
    maxOutputTokens: 4_000,
    providerOptions,
  });

  describe.each(wires)('over %s', (wire) => {
    const answers = all.filter((answer) => answer.wire === wire);
    const whole = answers.filter(({ kind }) => kind === 'whole');
    const streams = answers.filter(
      ({ kind, name }) => kind === 'stream' && !(packageName === 'anthropic()' && name === COMPACTED),
    );

    describe.skipIf(answers.length === 0)(`recorded answers${whySkipped(answers, wire)}`, () => {
      test.each(whole)('a whole one: $name', async (answer) => {
        const { finalStep } = await generateText(optionsFor(answer.model));
        expect(summaryOf(finalStep)).toEqual(wanted(await chatReading(recorded, answer), one));
        expect(takeWarnings()).toEqual([]);
      });

      test.each([...whole, ...streams])('a stream: $name', async (answer) => {
        const streamed = streamText({ ...optionsFor(answer.model), onError: () => undefined });
        await partsOf(streamed.stream);
        expect(summaryOf(await streamed.finalStep)).toEqual(wanted(await chatReading(recorded, answer), one));
        expect(takeWarnings()).toEqual([]);
      });

      const stateful = [...whole, ...streams].filter(({ bytes }) => OPAQUE.test(Buffer.from(bytes).toString('latin1')));
      test.runIf(one.thinking).each(stateful)('opaque state returns to its provider: $name', async (answer) => {
        const { details } = await chatReading(recorded, answer);
        const opaque = details.flatMap(
          ({ signature, data }) => (typeof signature === 'string' ? signature : data) ?? [],
        );
        const first = streamText({ ...optionsFor(answer.model), onError: () => undefined });
        await partsOf(first.stream);
        const { toolCalls, response } = await first.finalStep;
        // The public service's package keeps parts that it cannot show only beside calls.
        const isLost = packageName === 'openrouter()' && toolCalls.length === 0;
        if (opaque.length === 0 || response.messages.length === 0 || isLost) return;
        const results = toolCalls
          .filter(({ providerExecuted }) => providerExecuted !== true)
          .map(({ toolCallId, toolName }) => ({
            type: 'tool-result' as const,
            toolCallId,
            toolName,
            output: { type: 'text' as const, value: 'Done.' },
          }));
        const messages: ModelMessage[] = [
          { role: 'user', content: 'Go on.' },
          ...response.messages,
          results.length > 0 ? { role: 'tool', content: results } : { role: 'user', content: 'And now?' },
        ];
        const { prompt: _, ...rest } = optionsFor(answer.model);
        const second = streamText({ ...rest, messages, providerOptions: one.thinking!, onError: () => undefined });
        await partsOf(second.stream);
        const sent = recorded.upstream.exchanges.at(-1)!.body;
        for (const state of opaque) {
          // Amazon's wire encodes redacted data in Base64 once more.
          const forms = [JSON.stringify(state).slice(1, -1), Buffer.from(String(state)).toString('base64')];
          expect(forms.filter((form) => sent.includes(form))).not.toEqual([]);
        }
        // If the provider ran a tool itself, the package warns that it sends no result of it.
        const warned = takeWarnings().filter(
          (warning) => !/Results for|provider executed tool result/.test(JSON.stringify(warning)),
        );
        expect(warned).toEqual([]);
      });
    });
  });
});
