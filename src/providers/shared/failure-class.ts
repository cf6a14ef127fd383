import type { FailureClass } from '../dialect.ts';

/** The failure class of an error status, if a wire does not define its own. */
export function classOfStatus(status: number): FailureClass {
  switch (status) {
    case 401:
    case 403:
      return 'credential';
    case 402:
      return 'payment';
    case 404:
      return 'not_found';
    case 408:
    case 504:
      return 'timeout';
    case 409:
    case 425:
      return 'conflict';
    case 429:
      return 'rate_limited';
    case 529:
      return 'overloaded';
    default:
      return status >= 400 && status < 500 ? 'invalid_request' : 'unavailable';
  }
}
