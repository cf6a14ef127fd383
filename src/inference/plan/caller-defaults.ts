import type { Principal } from '../../http/principal.ts';
import { type Sort, sorts } from '../../routing/model-variant.ts';
import type { RouterRules } from '../../routing/router-models.ts';
import type { ChatRequest } from '../../schemas/inner.ts';

/** Values for requests that do not set them. */
export interface CallerDefaults {
  default_text_model?: string | null | undefined;
  default_provider_sort?: string | null | undefined;
}

/** The operator's routing settings. */
export interface RoutingRules extends RouterRules {
  /** Defaults of users by id; they override those of the key's workspace. */
  users: ReadonlyMap<string, CallerDefaults>;
  /** Whether broken streams are continued if the request does not say. */
  continuation: boolean;
  /** Whether late streams are hedged if the request does not say, and which share of them at most. */
  hedge: boolean;
  hedge_share_max: number;
}

/**
 * The model of a request that names none: the workspace's image model if the request wants images and the workspace has one, otherwise
 * the default of the user, of the workspace, of the configuration.
 */
export function defaultModel(
  { user_id, defaults }: Principal,
  { users }: Pick<RoutingRules, 'users'>,
  configured: string | undefined,
  { modalities }: Pick<ChatRequest, 'modalities'>,
): string | undefined {
  if (defaults?.default_image_model != null && modalities?.includes('image')) return defaults.default_image_model;
  const user = user_id === null ? undefined : users.get(user_id);
  return user?.default_text_model ?? defaults?.default_text_model ?? configured;
}

/** How endpoints are sorted if the request does not say: the default of the user, otherwise of the key's workspace. */
export function defaultSort(
  { user_id, defaults }: Principal,
  { users }: Pick<RoutingRules, 'users'>,
): Sort | undefined {
  const user = user_id === null ? undefined : users.get(user_id);
  const sort = (user?.default_provider_sort ?? defaults?.default_provider_sort) as Sort | null | undefined;
  return sort != null && sorts.includes(sort) ? sort : undefined;
}
