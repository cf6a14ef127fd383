import { declaredTools as toolsByName } from '../../providers/openai-responses/declared.ts';
import type { ChatRequest } from '../../schemas/inner.ts';

/** Which kinds of calls the tools that a client declared ask for. */
export interface DeclaredTools {
  /** Whether this is a tool whose input is a text of its own form. */
  isCustom(name: string): boolean;
  /** The name inside its namespace; undefined for a tool that is in none. */
  inNamespace(name: string): { namespace: string; name: string } | undefined;
}

/** Reads what a request declares, its items included. Tools of a namespace are known to other wires as `namespace__name`. */
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
