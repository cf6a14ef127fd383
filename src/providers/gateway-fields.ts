/**
 * Fields of an upstream's body that neither an operator's `extra_body` nor a client's `provider.options` may set: they
 * would get around routing, metering or the bounds that money is held for, or keep data upstream.
 */
export const gatewayFields: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'stream',
  'stream_options',
  'n',
  'best_of',
  'max_tokens',
  'max_completion_tokens',
  'store',
  'background',
  'conversation',
  'previous_response_id',
  'api_key',
]);
