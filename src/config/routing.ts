import type { ReadFile } from './read-file.ts';

/** What the file says of routing: which models the router models choose among, and what users have as their defaults. */
export interface RoutingConfig {
  /** Of `gateway/auto`, best first; undefined: there is no such router. */
  auto_models: readonly string[] | undefined;
  /** Of `gateway/free`. */
  free_models: readonly string[] | 'all' | undefined;
  /** What `gateway/auto` chooses among where nothing is set up and there is the sandbox alone. */
  sandbox_models?: readonly string[] | undefined;
  users: ReadonlyMap<string, { default_text_model?: string | undefined; default_provider_sort?: string | undefined }>;
}

export function routingConfig(file: ReadFile | undefined): RoutingConfig {
  const section = file?.value.routing;
  return {
    auto_models: section?.auto_models,
    free_models: section?.free_models,
    users: new Map(Object.entries(section?.users ?? {})),
  };
}
