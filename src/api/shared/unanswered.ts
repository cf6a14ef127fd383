import type { GatewayError } from '../../errors.ts';
import type { ChatRequest } from '../../schemas/inner.ts';

/** The requested model, which a stream names if no endpoint answers; empty if the request names none. */
export function requestedModel({ model, models }: Pick<ChatRequest, 'model' | 'models'>): string {
  return model ?? models?.[0] ?? '';
}

/** The provider that failed; undefined if none was called. */
export function failedProvider({ metadata }: GatewayError): string | undefined {
  const name = metadata?.['provider_name'];
  return typeof name === 'string' ? name : undefined;
}
