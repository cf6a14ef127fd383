import type { GatewayError } from '../errors.ts';
import type { Call } from '../inference/call.ts';
import type { WholeAnswer } from '../inference/events.ts';
import type { CallHooks, Middleware } from '../inference/pipeline.ts';
import type { AnswerTransform } from '../inference/transform.ts';
import type { Annotation, ChatChunk } from '../schemas/inner.ts';
import { shownAnnotation } from './files/file-annotations.ts';
import type { FileParser } from './files/file-parser.ts';
import type { Healing } from './healing/healing.ts';
import { checkPluginOptions } from './plugin-options.ts';

export interface PluginsOptions {
  files: FileParser;
  healing: Healing;
  /** Whether an engine that reads pictures of pages is configured. Called once a request, so that a reload takes effect at once. */
  hasOcr(): boolean;
}

/** Adds what files hold to a failure that came after they were read, so that the next try need not read them again. */
function withFiles(error: GatewayError, annotations: readonly Annotation[]): GatewayError {
  if (annotations.length === 0 || (error.status !== 429 && error.status < 502)) return error;
  return error.with({ metadata: { ...error.metadata, file_annotations: annotations } });
}

/**
 * Plugins that look at a whole call or its whole answer: answers that were to be JSON are repaired, and clients of the chat API
 * are shown what their files hold.
 */
export function plugins(options: PluginsOptions): Middleware {
  const { files, healing, hasOcr } = options;
  return {
    name: 'plugins',
    begin(call, purpose) {
      if (purpose === 'task') return undefined;
      if (purpose === 'routing') return sparing(files, 'reading');
      const refusal = refusalOf(call, hasOcr);
      if (refusal !== undefined) {
        return {
          onRequest() {
            throw refusal;
          },
        };
      }
      if (purpose === 'explain') return sparing(files, 'fetching');
      if (purpose === 'countTokens') return undefined;
      const heals = healing.isFor(call);
      return heals || files.isFor(call) ? new CallPlugins(call, options, heals) : undefined;
    },
  };
}

/** Why the options of a call's plugins are refused; undefined: they are all right. */
function refusalOf(call: Call, hasOcr: () => boolean): unknown {
  if (call.request.plugins == null) return undefined;
  try {
    checkPluginOptions(call.request, hasOcr());
    return undefined;
  } catch (error) {
    return error;
  }
}

function sparing(files: FileParser, what: 'fetching' | 'reading'): CallHooks {
  return {
    onRequest(call) {
      files.spare(call, what);
      return call;
    },
  };
}

/** The plugins of one call that asks for them. */
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

  /** What the files of the call hold, for clients of the chat API: no other API has a place for it. */
  #annotations(): Annotation[] {
    const call = this.#call;
    return call.request.ext?.client.showsFiles ? this.#options.files.annotations(call).map(shownAnnotation) : [];
  }
}

/** Adds what files hold to a streamed answer, before its end. */
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
