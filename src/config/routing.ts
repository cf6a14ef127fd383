import type { ReadFile } from './read-file.ts';
import { routing } from './settings/calls.ts';
import { type Filled, filled } from './settings/declare.ts';

/** The settings of `routing`: the models of the router models, the defaults of users, continuation and hedging. */
export interface RoutingConfig extends Omit<Filled<typeof routing.settings>, 'users' | 'hedge_share'> {
  hedge_share_max: number;
  /** The models of `gateway/auto` if nothing is configured and the sandbox alone is served. */
  sandbox_models?: readonly string[] | undefined;
  users: ReadonlyMap<string, { default_text_model?: string | undefined; default_provider_sort?: string | undefined }>;
}

/** Reads the section `routing`. */
export function routingConfig(file: ReadFile | undefined): RoutingConfig {
  const { users, hedge_share, ...settings } = filled(routing, file?.value.routing);
  return { ...settings, hedge_share_max: hedge_share, users: new Map(Object.entries(users ?? {})) };
}
