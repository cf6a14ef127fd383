import type { GatewayError } from '../errors.ts';
import type { Call } from '../inference/call.ts';
import type { WholeAnswer } from '../inference/events.ts';
import type { CallHooks, Middleware } from '../inference/pipeline.ts';
import type { AnswerTransform } from '../inference/transform.ts';
import { contentsOf } from '../schemas/contents.ts';
import type { Annotation, ChatChunk } from '../schemas/inner.ts';
import { shownAnnotation } from './files/file-annotations.ts';
import type { FileParser } from './files/file-parser.ts';
import type { Healing } from './healing/healing.ts';
import { checkPluginOptions } from './plugin-options.ts';

export interface PluginsOptions {
  files: FileParser;
  healing: Healing;
  /** Whether an OCR engine is configured. Called for each request, so that a reload takes effect at once. */
  hasOcr(): boolean;
}

/** Adds the texts of files to an error, so that the client's next attempt need not read them again. */
function withFiles(error: GatewayError, annotations: readonly Annotation[]): GatewayError {
  if (annotations.length === 0 || (error.status !== 429 && error.status < 502)) return error;
  return error.with({ metadata: { ...error.metadata, file_annotations: annotations } });
}

/**
 * Plugins for whole calls and whole answers: JSON answers are repaired, and clients of the chat API
 * receive the texts of their files.
 */
export function plugins(options: PluginsOptions): Middleware {
  const { files, healing, hasOcr } = options;
  return {
    name: 'plugins',
    begin(call, purpose) {
      if (purpose === 'task') return undefined;
      if (purpose === 'routing') return skipHooks(files, 'reading');
      const { plugins } = call.request;
      const refusal = plugins == null ? undefined : refusalOf(call, hasOcr);
      if (refusal !== undefined) {
        return {
          onRequest() {
            throw refusal;
          },
        };
      }
      if (purpose === 'explain') return skipHooks(files, 'fetching');
      if (purpose === 'countTokens') return undefined;
      const heals = plugins != null && healing.isFor(call);
      return heals || (contentsOf(call.request).has_files && files.isFor(call))
        ? new CallPlugins(call, options, heals)
        : undefined;
    },
  };
}

/** The error for invalid plugin options of a call. Undefined if they are valid. */
function refusalOf(call: Call, hasOcr: () => boolean): unknown {
  try {
    checkPluginOptions(call.request, hasOcr());
    return undefined;
  } catch (error) {
    return error;
  }
}

function skipHooks(files: FileParser, what: 'fetching' | 'reading'): CallHooks {
  return {
    onRequest(call) {
      files.skip(call, what);
      return call;
    },
  };
}

/** The plugins of one call that uses them. */
class CallPlugins implements CallHooks {
  #call: Call;
  readonly #options: PluginsOptions;
  readonly #heals: boolean;

  constructor(call: Call, options: PluginsOptions, heals: boolean) {
    this.#call = call;
    this.#options = options;
    this.#heals = heals;
  }

  onRequest(call: Call): Call {
    this.#call = call;
    if (this.#heals && call.request.stream === true) this.#options.healing.leaveStream(call);
    return call;
  }

  createTransform(): AnswerTransform | undefined {
    return this.#options.files.isFor(this.#call) ? new FileAnnotations(() => this.#annotations()) : undefined;
  }

  async onWhole(answer: WholeAnswer): Promise<WholeAnswer> {
    let { completion } = answer;
    if (this.#heals) completion = await this.#options.healing.heal(this.#call, completion);
    const annotations = this.#annotations();
    if (annotations.length > 0) {
      const [choice] = completion.choices;
      const message = { ...choice.message, annotations: [...(choice.message.annotations ?? []), ...annotations] };
      completion = { ...completion, choices: [{ ...choice, message }] };
    }
    return { ...answer, completion };
  }

  onError(error: GatewayError, place: 'thrown' | 'end'): GatewayError {
    return place === 'thrown' ? withFiles(error, this.#annotations()) : error;
  }

  /** The texts of the call's files, for clients of the chat API: no other API has a field for them. */
  #annotations(): Annotation[] {
    const call = this.#call;
    return call.request.ext?.client.showsFiles ? this.#options.files.annotations(call).map(shownAnnotation) : [];
  }
}

/** Adds the texts of files to a streamed answer, before its end. */
class FileAnnotations implements AnswerTransform {
  readonly refusal = undefined;
  readonly #annotations: () => Annotation[];
  #isAdded = false;

  constructor(annotations: () => Annotation[]) {
    this.#annotations = annotations;
  }

  take(chunks: ChatChunk[]): ChatChunk[] {
    const end = this.#isAdded ? -1 : chunks.findIndex(({ finish_reason }) => finish_reason != null);
    const annotations = end === -1 ? [] : this.#annotations();
    if (annotations.length === 0) return chunks;
    this.#isAdded = true;
    return chunks.toSpliced(end, 0, { delta: { annotations } });
  }

  reopen(): ChatChunk[] {
    return [];
  }

  end(): ChatChunk[] {
    return [];
  }

  hasChanged(): boolean {
    return this.#isAdded;
  }
}
