import type { Environment } from './providers.ts';
import { readVariable } from './read-variable.ts';

/** The keys that the first start makes, and whether it prints them. */
export interface FirstKeysConfig {
  /** Whether it makes an ordinary key. `auto`: if it makes a management key. */
  ordinary: 'auto' | 'on' | 'off';
  /** The spend limit of the ordinary key; undefined if it has none. */
  limit_nano: number | undefined;
  /** Whether they are printed. Otherwise they are written to a file in the data directory. */
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
