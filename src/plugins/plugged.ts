import { GatewayError } from '../errors.ts';
import { METERED } from '../http/metered.ts';
import { withSources } from '../http/sources.ts';
import type { Inference, WholeAnswer } from '../inference/answer.ts';
import type { Call } from '../inference/call.ts';
import type { StreamEvent } from '../inference/stream-answer.ts';
import type { Annotation, ChatChunk } from '../schemas/inner.ts';
import { shownAnnotation } from './files/file-annotations.ts';
import type { FileParser } from './files/file-parser.ts';
import type { Healing } from './healing/healing.ts';
import { checkPluginOptions } from './plugin-options.ts';

export interface PluggedOptions {
  files: FileParser;
  healing: Healing;
  /** Whether an engine that reads pictures of pages is configured. Asked once a request, so that a reload takes effect at once. */
  hasOcr(): boolean;
}

/** The routing as the client sees it, with what was done to the call after it was written. */
function withStages<T extends Record<string, unknown> | undefined>(metadata: T, { stages }: Call): T {
  if (metadata === undefined || stages.length === 0 || metadata['pipeline'] !== undefined) return metadata;
  return { ...metadata, pipeline: stages };
}

/** A failure that came after files were read: what they hold is told, so that the next try need not read them again. */
function withFiles(error: unknown, annotations: readonly Annotation[]): unknown {
  if (!(error instanceof GatewayError) || annotations.length === 0) return error;
  if (error.status !== 429 && error.status < 502) return error;
  const { status, message, metadata, gateway_metadata, headers, cause } = error;
  return new GatewayError(status, message, {
    metadata: { ...metadata, file_annotations: annotations },
    ...(gateway_metadata ? { gateway_metadata } : {}),
    ...(headers ? { headers } : {}),
    cause,
  });
}

/** What is said of files stands before the end of the answer. */
function beforeEnd(chunks: readonly ChatChunk[], annotations: Annotation[]): ChatChunk[] | undefined {
  const end = chunks.findIndex(({ finish_reason }) => finish_reason != null);
  return end === -1 ? undefined : chunks.toSpliced(end, 0, { delta: { annotations } });
}

/**
 * Plugins that look at a whole call or its whole answer: answers that were to be JSON are repaired, and clients of the chat API
 * are told what their files hold. A call that asks for neither passes through.
 */
export function createPlugged(inner: Inference, { files, healing, hasOcr }: PluggedOptions): Inference {
  /** No other API has a place for it. */
  function toldTo(call: Call): Annotation[] {
    return call.request.ext?.client.showsFiles ? files.annotations(call).map(shownAnnotation) : [];
  }

  async function completed(call: Call, heals: boolean): Promise<WholeAnswer> {
    let answer: WholeAnswer;
    try {
      answer = await inner.complete(call);
    } catch (error) {
      throw withFiles(error, toldTo(call));
    }
    let completion = heals ? await healing.heal(call, answer.completion) : answer.completion;
    const annotations = toldTo(call);
    if (annotations.length > 0) {
      const [choice] = completion.choices;
      const message = { ...choice.message, annotations: [...(choice.message.annotations ?? []), ...annotations] };
      completion = { ...completion, choices: [{ ...choice, message }] };
    }
    return { ...answer, completion, metadata: withStages(answer.metadata, call) };
  }

  async function* streamed(call: Call): AsyncGenerator<StreamEvent, void, undefined> {
    let is_told = false;
    try {
      for await (const event of inner.stream(call)) {
        if (event.type !== 'chunks' || is_told) {
          yield event;
          continue;
        }
        const annotations = toldTo(call);
        const chunks = annotations.length === 0 ? undefined : beforeEnd(event.chunks, annotations);
        is_told = chunks !== undefined;
        yield chunks === undefined ? event : { ...event, chunks };
      }
    } catch (error) {
      throw withFiles(error, toldTo(call));
    }
  }

  /** Options that there are not; undefined: all of them are known. */
  function refusal(call: Call): unknown {
    if (call.request.plugins == null) return undefined;
    try {
      checkPluginOptions(call.request, hasOcr());
      return undefined;
    } catch (error) {
      return error;
    }
  }

  return {
    [METERED]: true,
    complete(call) {
      const refused = refusal(call);
      if (refused !== undefined) return Promise.reject(refused);
      const heals = healing.isFor(call);
      return heals || files.isFor(call) ? completed(call, heals) : inner.complete(call);
    },
    stream(call) {
      const refused = refusal(call);
      if (refused !== undefined) return withSources(refusedStream(refused));
      if (healing.isFor(call)) healing.leaveStream(call);
      return files.isFor(call) ? withSources(streamed(call)) : inner.stream(call);
    },
    async explain(call) {
      const refused = refusal(call);
      if (refused !== undefined) throw refused;
      files.spare(call, 'fetching');
      return inner.explain(call);
    },
    async countTokens(call) {
      const refused = refusal(call);
      if (refused !== undefined) throw refused;
      return inner.countTokens(call);
    },
    routingOf(call, wanted) {
      files.spare(call, 'reading');
      return inner.routingOf(call, wanted);
    },
    run: inner.run,
  };
}

// biome-ignore lint/correctness/useYield: a stream that fails before its first event.
async function* refusedStream(error: unknown): AsyncGenerator<StreamEvent, void, undefined> {
  throw error;
}
