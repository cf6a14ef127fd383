/**
 * Fields of an upstream's body that neither an operator's `extra_body` nor a client's `provider.options` may set: they would bypass
 * routing, metering or the bounds that money is held for, or store data upstream.
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
  // Of gateways behind this one: other models and other hosts.
  'models',
  'fallbacks',
  'api_base',
  'base_url',
  // Several answers, of which one is returned.
  'num_generations',
  'num_return_sequences',
  // An answer that is fetched later (https://docs.x.ai/docs/guides/deferred-chat-completions).
  'deferred',
  // Content that Azure reads from elsewhere in addition to the prompt (https://learn.microsoft.com/azure/ai-foundry/openai/references/on-your-data).
  'data_sources',
]);

/** Fields of a chat request that address the gateway; an upstream never receives them. */
export const gatewayOnlyFields: ReadonlySet<string> = new Set([
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
