import type { Faults } from './faults.ts';

/** How a model makes its answer. Other differences between models are faults. */
export type Behaviour = 'echo' | 'story' | 'tools' | 'research' | 'think' | 'json' | 'refuse';

/** A model: how it answers, and its own faults. */
export interface SandboxModel {
  behaviour: Behaviour;
  faults: Partial<Faults>;
  /** What the model does, in a sentence. */
  description: string;
}

export const MODEL_CONTEXT_TOKENS = 200_000;
export const MODEL_OUTPUT_TOKENS = 32_768;

/** Every model by name. Settings can follow a name: `story;tokens=500`. */
export const modelsByName: Readonly<Record<string, SandboxModel>> = {
  echo: { behaviour: 'echo', faults: {}, description: 'Answers with the last user text.' },
  story: {
    behaviour: 'story',
    faults: {},
    description: 'Tells a short story of 200 tokens; the same text tells the same story.',
  },
  tools: {
    behaviour: 'tools',
    faults: {},
    description:
      'Calls every offered tool, in parallel unless that is disabled, and answers when it has their results.',
  },
  research: {
    behaviour: 'research',
    faults: {},
    description:
      'Announces a search, calls every offered tool, and answers with links to the addresses in their results.',
  },
  think: { behaviour: 'think', faults: {}, description: 'Thinks before it answers with the last user text.' },
  json: { behaviour: 'json', faults: {}, description: 'Answers with JSON, by the schema when there is one.' },
  refuse: { behaviour: 'refuse', faults: {}, description: 'Refuses to answer.' },
  slow: {
    behaviour: 'story',
    faults: { delay_ms: 500, chunk_delay_ms: 20 },
    description: 'Tells a story at fifty tokens a second.',
  },
  'no-usage': { behaviour: 'echo', faults: { no_usage: true }, description: 'Never reports its usage.' },
  'no-done': { behaviour: 'echo', faults: { no_done: true }, description: 'Ends its streams without the terminator.' },
  truncate: {
    behaviour: 'story',
    faults: { truncate_after_chunks: 20 },
    description: 'Its answers end early without an error.',
  },
  hang: { behaviour: 'echo', faults: { hang: true }, description: 'Never answers.' },
  stall: {
    behaviour: 'story',
    faults: { stall_after: 10 },
    description: 'Stops sending in the middle of its answers.',
  },
  'fail-once': {
    behaviour: 'echo',
    faults: { status: 503, fail_times: 1 },
    description: 'Fails the first request of a user or conversation with 503, then works.',
  },
  'fail-503': { behaviour: 'echo', faults: { status: 503 }, description: 'Always fails with 503.' },
  'fail-429': {
    behaviour: 'echo',
    faults: { status: 429, retry_after: 1 },
    description: 'Always answers 429 with a wait of one second.',
  },
  'fail-500-html': {
    behaviour: 'echo',
    faults: { status: 500, html: true },
    description: "Always fails with a proxy's HTML page.",
  },
  'fail-mid-stream': {
    behaviour: 'story',
    faults: { die_after_chunks: 10 },
    description: 'Its connection breaks in the middle of every answer.',
  },
  'fail-late': {
    behaviour: 'story',
    faults: { error_in_stream: 10 },
    description: 'Sends an error event in the middle of every stream.',
  },
};
