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
  // Of gateways behind this one: other models, and other hosts.
  'models',
  'fallbacks',
  'api_base',
  'base_url',
  // Several answers, of which one is given.
  'num_generations',
  'num_return_sequences',
  // An answer that is to be fetched later (https://docs.x.ai/docs/guides/deferred-chat-completions).
  'deferred',
  // What Azure reads beside the prompt, from elsewhere (https://learn.microsoft.com/azure/ai-foundry/openai/references/on-your-data).
  'data_sources',
]);

/** Fields of a chat request that speak to the gateway; an upstream never sees them. */
export const spokenToGateway: ReadonlySet<string> = new Set([
  'ext',
  'provider',
  'models',
  'route',
  'plugins',
  'debug',
  'usage',
  'transforms',
  'preset',
  'session_id',
  'trace',
  'max_tool_calls',
  'stop_server_tools_when',
]);
