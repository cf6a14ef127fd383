import type { GatewayError } from '../../errors.ts';
import type { ChatRequest } from '../../schemas/inner.ts';

/** The model that a stream names which nobody answers: the one that was asked for. Empty where the request names none. */
export function askedModel({ model, models }: Pick<ChatRequest, 'model' | 'models'>): string {
  return model ?? models?.[0] ?? '';
}

/** The provider whose failure this is; undefined where none was asked. */
export function failedProvider({ metadata }: GatewayError): string | undefined {
  const name = metadata?.['provider_name'];
  return typeof name === 'string' ? name : undefined;
}
