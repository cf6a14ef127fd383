import type { Quirks } from '../providers/quirks.ts';
import { type EndpointParameter, endpointParameters } from '../schemas/endpoint.ts';

const OF_TOOLS: ReadonlySet<string> = new Set<EndpointParameter>(['tools', 'tool_choice', 'parallel_tool_calls']);

/** What an endpoint takes natively: no tools, where its server has none, whatever is known of its model. */
export function nativeParameters(
  { no_native_tools: noNativeTools }: Quirks,
  parameters: readonly string[] | undefined,
): readonly string[] | undefined {
  if (noNativeTools !== true) return parameters;
  return (parameters ?? endpointParameters).filter((name) => !OF_TOOLS.has(name));
}
