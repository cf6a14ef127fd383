import type { Environment } from './providers.ts';
import { readVariable } from './read-variable.ts';

/** The keys that the first start makes, and where it shows them. */
export interface FirstKeysConfig {
  /** Whether it makes an ordinary key beside the management key. `auto`: when it makes a management key too. */
  ordinary: 'auto' | 'on' | 'off';
  /** What the ordinary key may spend in all; undefined: as much as the organization. */
  limit_nano: number | undefined;
  /** Whether they are printed. Otherwise a file of the data directory holds them. */
  are_printed: boolean;
}

/** Reads the settings of the first keys. */
export function readFirstKeys(environment: Environment): FirstKeysConfig {
  return {
    ordinary: readVariable(environment, 'GATEWAY_FIRST_KEY'),
    limit_nano: readVariable(environment, 'GATEWAY_FIRST_KEY_LIMIT'),
    are_printed: readVariable(environment, 'GATEWAY_PRINT_KEYS') === 'on',
  };
}
