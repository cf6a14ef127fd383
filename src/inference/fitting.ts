import type { MediaFetcher } from '../providers/fetch-media.ts';
import { type Adapter, adapterFor, type CallAdapter } from './adapters.ts';
import type { Call } from './call.ts';
import { type DeclaredTools, declareTools } from './declared-tools.ts';
import { type CallMedia, createCallMedia } from './media.ts';
import type { ServerTools } from './server-tools.ts';

/** What makes one call's requests fit the endpoints that it is tried at, whichever of its steps they are of. */
export interface Fitting {
  adapter: CallAdapter | undefined;
  /** The gateway's own tools; undefined: none are asked for. */
  tools: DeclaredTools | undefined;
  /** What was fetched for it. */
  fetched: CallMedia;
}

export interface FittingOptions {
  /** Fetches what an upstream does not fetch itself. */
  media: MediaFetcher;
  /** What makes calls fit endpoints, in order. */
  adapters: readonly Adapter[];
  /** The tools that the gateway runs. */
  server_tools: ServerTools;
}

/** Looks at a call once. Throws `GatewayError` 400 for what it asks of the gateway's tools and cannot be. */
export function fittingOf(call: Call, { media, adapters, server_tools }: FittingOptions): Fitting {
  const { tools } = call.request;
  const own = tools == null || tools.length === 0 ? undefined : server_tools(call);
  return {
    adapter: adapterFor(call, adapters),
    tools: own && declareTools(call.request, own),
    fetched: createCallMedia(call, media),
  };
}
