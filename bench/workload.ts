/**
 * The requests of the benchmark and the answers of its upstream. Both ends use this module, so that answers can be
 * compared exactly.
 */

/** The model that answers at once, whole or as a stream without pauses. */
export const ANSWER_MODEL = 'bench/answer';

export interface StreamShape {
  chunks: number;
  interval_ms: number;
}

/** The streams that the measurements use; a gateway with a catalog lists exactly these models. */
export const STREAMS = {
  /** Fifty tokens a second for one second: streams begin and end while others run. */
  first_token: { chunks: 50, interval_ms: 20 },
  /** A hundred tokens a second: 200 of them are 20,000 chunks a second. */
  chunk_cpu: { chunks: 6_000, interval_ms: 10 },
  /** Open for the whole measurement, one chunk a second. */
  memory: { chunks: 120, interval_ms: 1_000 },
  /** A short stream, to check that a server answers correctly. */
  check: { chunks: 20, interval_ms: 2 },
} as const satisfies Record<string, StreamShape>;

/**
 * The name of a stream's model states its shape: the upstream needs nothing else, and every server forwards the model.
 */
export function streamModel(shape: StreamShape): string {
  return `bench/stream-${shape.chunks}-${shape.interval_ms}`;
}

/** The shape that a model's name states; by default the unpaced stream of a few chunks. */
export function streamShape(model: string): StreamShape {
  const match = /^bench\/stream-(\d+)-(\d+)$/.exec(model);
  return match === null ? { chunks: 20, interval_ms: 0 } : { chunks: Number(match[1]), interval_ms: Number(match[2]) };
}

export const MODELS = [ANSWER_MODEL, ...Object.values(STREAMS).map(streamModel)];

const PROMPT =
  'Write a short note for a colleague who takes over the on-call duty tonight: what is running, what to watch, and whom to wake. ' +
  'Keep it plain, name no product, and end with one sentence of thanks. The house style is short sentences and no exclamation marks. ';

/** The body of a request as an SDK writes it: about 800 bytes. */
export function requestBody(model: string, stream: boolean): string {
  return JSON.stringify({
    model,
    messages: [
      { role: 'system', content: 'You are a careful assistant who answers in plain words.' },
      { role: 'user', content: PROMPT.repeat(2) },
    ],
    temperature: 0.7,
    max_tokens: 512,
    ...(stream ? { stream: true, stream_options: { include_usage: true } } : {}),
  });
}

const SENTENCE =
  'Nothing is on fire: the queue is short, the disks are half empty, and last night was quiet, so watch the error rate. ';

/** The text of the whole answer; with its envelope the body is about 1 KB. */
export const ANSWER_TEXT = SENTENCE.repeat(5).trim();

const MODEL_SNAPSHOT = 'bench-2026-01-01';

/** The whole answer in the form of OpenAI's chat completions (platform.openai.com/docs/api-reference/chat/object). */
export const ANSWER_BODY = JSON.stringify({
  id: 'chatcmpl-bench0000000000000000000001',
  object: 'chat.completion',
  created: 1_767_225_600,
  model: MODEL_SNAPSHOT,
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: ANSWER_TEXT, refusal: null, annotations: [] },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: {
    prompt_tokens: 131,
    completion_tokens: 120,
    total_tokens: 251,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
  },
  service_tier: 'default',
  system_fingerprint: 'fp_bench',
});

function event(choices: unknown[], rest: Record<string, unknown> = {}): string {
  return `data: ${JSON.stringify({
    id: 'chatcmpl-bench0000000000000000000002',
    object: 'chat.completion.chunk',
    created: 1_767_225_600,
    model: MODEL_SNAPSHOT,
    service_tier: 'default',
    system_fingerprint: 'fp_bench',
    choices,
    ...rest,
  })}\n\n`;
}

const delta = (content: object, finishReason: string | null = null) => [
  { index: 0, delta: content, logprobs: null, finish_reason: finishReason },
];

export const STREAM_WORD = ' evening';

/**
 * The events of a stream in the form of OpenAI's chunks (platform.openai.com/docs/api-reference/chat-streaming); a
 * content event is about 260 bytes.
 */
export const STREAM_EVENTS = {
  role: event(delta({ role: 'assistant', content: '', refusal: null })),
  content: event(delta({ content: STREAM_WORD })),
  finish: event(delta({}, 'stop')),
  usage: (chunks: number) =>
    event([], {
      usage: {
        prompt_tokens: 131,
        completion_tokens: chunks,
        total_tokens: 131 + chunks,
        prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
      },
    }),
  done: 'data: [DONE]\n\n',
};
