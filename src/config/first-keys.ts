import { parseUsd } from '../schemas/money.ts';
import { ConfigError } from './config-error.ts';
import { type Environment, variable } from './providers.ts';

/** The keys that the first start makes, and where it shows them. */
export interface FirstKeysConfig {
  /** Whether it makes an ordinary key beside the management key. `auto`: when it makes a management key too. */
  ordinary: 'auto' | 'on' | 'off';
  /** What the ordinary key may spend in all; undefined: as much as the organization. */
  limit_nano: number | undefined;
  /** Whether they are printed. Otherwise a file of the data directory holds them. */
  are_printed: boolean;
}

/** Reads the settings of the first keys; `choice` reads one of several words. */
export function readFirstKeys(
  environment: Environment,
  choice: <const T extends readonly string[]>(
    name: 'GATEWAY_FIRST_KEY' | 'GATEWAY_PRINT_KEYS',
    values: T,
  ) => T[number] | undefined,
): FirstKeysConfig {
  const limit = variable(environment, 'GATEWAY_FIRST_KEY_LIMIT');
  const limit_nano = limit === undefined ? undefined : parseUsd(limit);
  if (limit !== undefined && limit_nano === undefined) {
    throw new ConfigError(`GATEWAY_FIRST_KEY_LIMIT must be an amount of USD such as 5 or 0.50, not "${limit}"`);
  }
  return {
    ordinary: choice('GATEWAY_FIRST_KEY', ['auto', 'on', 'off'] as const) ?? 'auto',
    limit_nano,
    are_printed: choice('GATEWAY_PRINT_KEYS', ['on', 'off'] as const) !== 'off',
  };
}
