import type { Media, MediaNeed } from '../../providers/dialect.ts';
import type { MediaFetcher } from '../../providers/transport/fetch-media.ts';
import type { Call } from '../call.ts';
import { type DeclaredTools, declareTools } from '../tools/declared-tools.ts';
import type { CallResources, ServerTools } from '../tools/server-tools.ts';
import { type Adapter, adapterFor, type CallAdapter } from './adapters.ts';
import { type CallMedia, createCallMedia } from './media.ts';

export interface FittingOptions {
  /** Fetches what an upstream does not fetch itself. */
  media: MediaFetcher;
  /** What makes calls fit endpoints, in order. */
  adapters: readonly Adapter[];
  /** The tools that the gateway runs. */
  server_tools: ServerTools;
}

/** What makes one call's requests fit the endpoints that it is tried at, whichever of its steps they are of. */
export class Fitting {
  readonly adapter: CallAdapter | undefined;
  /** The gateway's own tools; undefined: none are asked for. */
  readonly tools: DeclaredTools | undefined;
  readonly #call: Call;
  readonly #media: MediaFetcher;
  #fetched: CallMedia | undefined;

  /** Looks at a call once. Throws `GatewayError` 400 for what it asks of the gateway's tools and cannot be. */
  constructor(call: Call, resources: CallResources, { media, adapters, server_tools }: FittingOptions) {
    const { tools } = call.request;
    const own = tools == null || tools.length === 0 ? undefined : server_tools(call);
    this.adapter = adapterFor(call, resources, adapters);
    this.tools = own && declareTools(call.request, own);
    this.#call = call;
    this.#media = media;
  }

  /** See `CallMedia.gather`: each address is fetched once for the call. */
  gather(needs: readonly MediaNeed[]): Promise<Media> {
    this.#fetched ??= createCallMedia(this.#call, this.#media);
    return this.#fetched.gather(needs);
  }
}
