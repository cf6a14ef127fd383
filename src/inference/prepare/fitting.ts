import type { Media, MediaNeed } from '../../providers/dialect.ts';
import type { MediaFetcher } from '../../providers/transport/fetch-media.ts';
import type { Call } from '../call.ts';
import { type DeclaredTools, declareTools } from '../tools/declared-tools.ts';
import type { CallResources, ServerTools } from '../tools/server-tools.ts';
import { type Adapter, type CallAdapter, combineAdapters } from './adapters.ts';
import { type CallMedia, createCallMedia } from './media.ts';

export interface FittingOptions {
  /** Fetches media that the upstream does not fetch itself. */
  media: MediaFetcher;
  /** In the order in which they are applied. */
  adapters: readonly Adapter[];
  /** The tools that the gateway runs. */
  server_tools: ServerTools;
}

/** Fits the requests of one call to the endpoints that are tried, and holds fetched media. Shared by all steps of the call. */
export class Fitting {
  /** Undefined if the call needs no adapter. */
  readonly adapter: CallAdapter | undefined;
  /** The gateway's own tools; undefined if the call requests none. */
  readonly tools: DeclaredTools | undefined;
  readonly #call: Call;
  readonly #media: MediaFetcher;
  #fetched: CallMedia | undefined;

  /** Throws `GatewayError` 400 if the call requests a tool of the gateway's in a way that is not supported. */
  constructor(call: Call, resources: CallResources, { media, adapters, server_tools }: FittingOptions) {
    const { tools } = call.request;
    const own = tools == null || tools.length === 0 ? undefined : server_tools(call);
    let acting: CallAdapter[] | undefined;
    for (const create of adapters) {
      const adapter = create(call, resources);
      if (adapter === undefined) continue;
      acting ??= [];
      acting.push(adapter);
    }
    this.adapter = acting === undefined || acting.length === 1 ? acting?.[0] : combineAdapters(acting);
    this.tools = own && declareTools(call.request, own);
    this.#call = call;
    this.#media = media;
  }

  /** See `CallMedia.gather`. Fetches each address once a call. */
  gather(needs: readonly MediaNeed[]): Promise<Media> {
    this.#fetched ??= createCallMedia(this.#call, this.#media);
    return this.#fetched.gather(needs);
  }
}
