import type { Wire } from '../../schemas/inner.ts';
import { dialectOf } from '../dialects.ts';
import type { Quirks } from '../provider.ts';

/** What the upstream's name of a model tells about its endpoint; these facts stand over the provider's quirks. */
export function modelQuirks(wire: Wire, upstreamModel: string): Quirks {
  return dialectOf(wire).facts.modelQuirks(upstreamModel);
}
