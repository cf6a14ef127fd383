import type { ChatRequest, FunctionTool, InnerTool, ToolChoice } from '../schemas/inner.ts';
import type { CallTools, ServerTool } from './server-tools.ts';

/** The gateway's tools of one call, as its models see them. */
export interface DeclaredTools {
  /** By the names under which models call them: those that were declared at an endpoint so far. */
  byName: ReadonlyMap<string, ServerTool>;
  /** The request with functions in the place of those that are left in it. The same where none is. */
  declare(request: ChatRequest): ChatRequest;
}

function isFunction(tool: InnerTool): tool is FunctionTool {
  return tool.type === 'function';
}

/** A name that none of the client's tools has. */
function freeName(name: string, taken: ReadonlySet<string>): string {
  if (!taken.has(name)) return name;
  let free = `gateway_${name}`;
  while (taken.has(free)) free += '_';
  return free;
}

/** Declares the gateway's tools among the client's own, as the adapters left them for an endpoint. The first of a type counts. */
export function declareTools({ tools }: ChatRequest, own: CallTools): DeclaredTools {
  const taken = new Set((tools ?? []).filter(isFunction).map((tool) => tool.function.name));
  /** By type: the same at every endpoint. */
  const names = new Map<string, string>();
  const byName = new Map<string, ServerTool>();

  function nameOf({ type, declaration }: ServerTool): string {
    let name = names.get(type);
    if (name === undefined) {
      name = freeName(declaration.function.name, taken);
      taken.add(name);
      names.set(type, name);
    }
    return name;
  }

  /** A choice of one of them by its type, as the client knows it. */
  function choiceOf(choice: ToolChoice | null | undefined): ToolChoice | null | undefined {
    if (typeof choice !== 'object' || choice === null || choice.type === 'function') return choice;
    const name = names.get(choice.type);
    return name === undefined ? choice : { type: 'function', function: { name } };
  }

  return {
    byName,
    declare(request) {
      const declared = new Set<string>();
      const made = (request.tools ?? []).flatMap((entry): InnerTool[] => {
        const tool = isFunction(entry) ? undefined : own.of(entry);
        if (tool === undefined) return [entry];
        const name = nameOf(tool);
        if (declared.has(name)) return [];
        declared.add(name);
        byName.set(name, tool);
        const { declaration } = tool;
        return [{ ...declaration, function: { ...declaration.function, name } }];
      });
      if (declared.size === 0) return request;
      return { ...request, tools: made, tool_choice: choiceOf(request.tool_choice) ?? null };
    },
  };
}
