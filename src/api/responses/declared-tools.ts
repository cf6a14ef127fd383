import type { ResponsesRequestBody } from './door.ts';

/** Which kinds of calls the tools that a client declared ask for. */
export interface DeclaredTools {
  /** Whether this is a tool whose input is a text of its own form. */
  isCustom(name: string): boolean;
  /** The name inside its namespace; undefined for a tool that is in none. */
  inNamespace(name: string): { namespace: string; name: string } | undefined;
}

/** Reads the declarations of a request. Tools of a namespace are known to other wires as `namespace__name`. */
export function declaredTools(tools: ResponsesRequestBody['tools']): DeclaredTools {
  const custom = new Set<string>();
  const inside = new Map<string, { namespace: string; name: string }>();
  for (const tool of tools ?? []) {
    if (tool.type === 'custom' && 'name' in tool) custom.add(String(tool.name));
    if (tool.type !== 'namespace' || !('tools' in tool) || !Array.isArray(tool.tools)) continue;
    for (const told of tool.tools as { type?: unknown; name?: unknown }[]) {
      const known_as = `${String(tool.name)}__${String(told.name)}`;
      inside.set(known_as, { namespace: String(tool.name), name: String(told.name) });
      if (told.type === 'custom') custom.add(known_as);
    }
  }
  return { isCustom: (name) => custom.has(name), inNamespace: (name) => inside.get(name) };
}
