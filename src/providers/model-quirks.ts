import type { Wire } from '../schemas/inner.ts';
import { anthropicModelQuirks } from './anthropic-messages/model-quirks.ts';
import { cohereModelQuirks } from './cohere-chat/model-quirks.ts';
import { responsesModelQuirks } from './openai-responses/model-quirks.ts';
import type { Quirks } from './provider.ts';

/** What the upstream's name of a model tells about its endpoint; these facts stand over the provider's quirks. */
export function modelQuirks(wire: Wire, upstream_model: string): Quirks {
  switch (wire) {
    case 'anthropic-messages':
    case 'bedrock-converse':
      return anthropicModelQuirks(upstream_model);
    case 'cohere-chat':
      return cohereModelQuirks(upstream_model);
    case 'openai-responses':
      return responsesModelQuirks(upstream_model);
    default:
      return {};
  }
}
