import { declaredTools as toolsByName } from '../../providers/openai-responses/declared.ts';
import type { ChatRequest } from '../../schemas/inner.ts';

/** How calls of the declared tools are represented. */
export interface DeclaredTools {
  /** Whether the input of this tool is a text instead of JSON. */
  isCustom(name: string): boolean;
  /** The name of a tool inside its namespace; undefined if it is in none. */
  inNamespace(name: string): { namespace: string; name: string } | undefined;
}

/** Reads the tools that a request declares. Other wires know a tool of a namespace as `namespace__name`. */
export function declaredTools(tools: ChatRequest['tools']): DeclaredTools {
  const declared = toolsByName(tools);
  return {
    isCustom: (name) => declared.get(name)?.is_custom === true,
    inNamespace(name) {
      const tool = declared.get(name);
      return tool?.namespace === undefined ? undefined : { namespace: tool.namespace, name: tool.name };
    },
  };
}
