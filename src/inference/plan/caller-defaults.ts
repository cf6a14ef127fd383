import type { Principal } from '../../http/principal.ts';
import { type Sort, sorts } from '../../routing/model-variant.ts';
import type { RouterRules } from '../../routing/router-models.ts';
import type { ChatRequest } from '../../schemas/inner.ts';

/** What a request gets that says nothing itself. */
export interface CallerDefaults {
  default_text_model?: string | null | undefined;
  default_provider_sort?: string | null | undefined;
}

/** What the operator says of routing. */
export interface RoutingRules extends RouterRules {
  /** Of users, by their id: they go before what the key's workspace says. */
  users: ReadonlyMap<string, CallerDefaults>;
}

function usersOwn({ user_id }: Principal, { users }: RoutingRules): CallerDefaults | undefined {
  return user_id === null ? undefined : users.get(user_id);
}

/**
 * The model of a request that names none. Where it asks for pictures, the workspace's for these; else, and where there is none, the
 * user's, the workspace's, the configuration's.
 */
export function defaultModel(
  principal: Principal,
  rules: RoutingRules,
  configured: string | undefined,
  { modalities }: Pick<ChatRequest, 'modalities'>,
): string | undefined {
  const { default_text_model, default_image_model } = principal.defaults ?? {};
  if (default_image_model != null && modalities?.includes('image')) return default_image_model;
  return usersOwn(principal, rules)?.default_text_model ?? default_text_model ?? configured;
}

/** What endpoints are sorted by where the request does not say: the user's wish, else that of the key's workspace. */
export function defaultSort(principal: Principal, rules: RoutingRules): Sort | undefined {
  const said = usersOwn(principal, rules)?.default_provider_sort ?? principal.defaults?.default_provider_sort;
  return sorts.find((sort) => sort === said);
}
