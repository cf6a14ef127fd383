import type { Quirks } from '../providers/quirks.ts';
import { type EndpointParameter, endpointParameters } from '../schemas/endpoint.ts';

const TOOL_PARAMETERS: ReadonlySet<string> = new Set<EndpointParameter>([
  'tools',
  'tool_choice',
  'parallel_tool_calls',
]);

/** The parameters that an endpoint supports natively: without those of tools if its server has no native tools. */
export function nativeParameters(
  { no_native_tools: noNativeTools }: Quirks,
  parameters: readonly string[] | undefined,
): readonly string[] | undefined {
  if (noNativeTools !== true) return parameters;
  return (parameters ?? endpointParameters).filter((name) => !TOOL_PARAMETERS.has(name));
}
