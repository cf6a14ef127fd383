import { readForm } from '../../http/form.ts';
import { inTurns } from '../../http/in-turns.ts';
import type { Server } from '../../http/server.ts';
import type { Clock } from '../../inference/call.ts';
import type { Inference } from '../../inference/create-inference.ts';
import type { TaskAnswer } from '../../inference/operations/task.ts';
import { estimateSound, transcriptionTask } from '../../inference/operations/transcription.ts';
import type { TranscriptionAnswer } from '../../providers/transcription/dialect.ts';
import { errors } from '../../schemas/error.ts';
import { metadataMembers } from '../../schemas/routing-metadata.ts';
import { TranscriptionAnswer as Answer, TranscriptionBody, TranscriptionForm } from '../../schemas/transcription.ts';
import { inputTokens, outputTokens } from '../../schemas/usage.ts';
import { answerWhole } from '../shared/answer-whole.ts';
import { callOf, logFacts } from '../shared/call-of.ts';
import { type Transcription, transcriptionOf, transcriptionOfForm } from './parse-request.ts';

export interface TranscriptionOptions {
  inference: Inference;
  clock: Clock;
}

/** Duration and cost; also tokens if the upstream counts them. */
function usageOf(
  { answer, usage, classes }: TaskAnswer<TranscriptionAnswer>,
  { sound }: Transcription['request'],
): Record<string, unknown> {
  const { cost, is_byok, cost_details } = usage;
  const [input, output] = [inputTokens(classes), outputTokens(classes)];
  const counted = answer.tokens !== undefined;
  return {
    type: counted ? 'tokens' : 'duration',
    seconds: answer.seconds ?? sound.duration_ms / 1000,
    ...(counted ? { input_tokens: input, output_tokens: output, total_tokens: input + output } : {}),
    ...(cost === undefined ? {} : { cost }),
    is_byok,
    ...(cost_details === undefined ? {} : { cost_details }),
  };
}

function encode(answered: TaskAnswer<TranscriptionAnswer>, { request, response_format }: Transcription): string {
  const { answer, metadata } = answered;
  const { text, language, segments, words } = answer;
  if (response_format === 'text') return `${text}\n`;
  const usage = usageOf(answered, request);
  const shown = metadataMembers(metadata);
  if (response_format === 'json') return JSON.stringify({ text, usage, ...shown });
  // The duration of the audio, not the billed seconds, which some providers round up.
  const duration = request.sound.duration_ms / 1000;
  const spoken = language ?? request.language;
  return JSON.stringify({
    task: 'transcribe',
    ...(spoken === undefined ? {} : { language: spoken }),
    duration,
    text,
    ...(segments === undefined ? {} : { segments: segments.map((segment, id) => ({ id, ...segment })) }),
    ...(words === undefined ? {} : { words: words.map(({ text: word, start, end }) => ({ word, start, end })) }),
    usage,
    ...shown,
  });
}

/** `POST /audio/transcriptions`: transcribes an audio file, sent as JSON or as the form of OpenAI's clients. */
export function createTranscription(server: Server, { inference, clock }: TranscriptionOptions): void {
  server.register((scope, _options, done) => {
    scope.addContentTypeParser('multipart/form-data', readForm);
    (scope as unknown as Server).route({
      method: 'POST',
      url: '/audio/transcriptions',
      config: { metered: inference },
      schema: {
        operationId: 'createTranscription',
        tags: ['Audio'],
        summary: 'Transcribes an audio file.',
        description:
          'The length of the audio is measured before it is sent; prices per second and spend limits use it.',
        body: {
          content: {
            'application/json': { schema: TranscriptionBody },
            'multipart/form-data': { schema: TranscriptionForm },
          },
        },
        response: { 200: Answer, ...errors(400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 502, 503) },
      },
      handler: async (request, reply) => {
        const isForm = /^multipart\/form-data/i.test(request.headers['content-type'] ?? '');
        const steps = isForm
          ? transcriptionOfForm(request.body as TranscriptionForm)
          : transcriptionOf(request.body as TranscriptionBody);
        const parsed = (await inTurns(steps))!;
        const { request: transcription, routed } = parsed;
        const call = callOf(request, routed, clock, {
          api_type: 'stt',
          estimate: () => estimateSound(transcription.sound.duration_ms),
        });
        reply.header('x-generation-id', call.generation_id);
        request.log_facts = () => logFacts([call]);
        const contentType = parsed.response_format === 'text' ? 'text/plain; charset=utf-8' : undefined;
        return answerWhole(
          reply,
          call,
          () => inference.run(call, transcriptionTask(transcription, routed)),
          (answer) => encode(answer, parsed),
          contentType,
        );
      },
    });
    done();
  });
}
