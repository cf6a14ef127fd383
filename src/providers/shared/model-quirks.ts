import type { Wire } from '../../schemas/inner.ts';
import { dialectOf } from '../dialects.ts';
import type { Quirks } from '../quirks.ts';

/** The quirks that the upstream's name of a model implies; they override the provider's quirks. */
export function modelQuirks(wire: Wire, upstreamModel: string): Quirks {
  return dialectOf(wire).facts.modelQuirks(upstreamModel);
}
