import type { ChatRequest, FunctionTool, InnerTool, ToolChoice } from '../schemas/inner.ts';
import type { CallTools, ServerTool } from './server-tools.ts';

/** The gateway's tools of one call, as its models see them. */
export interface DeclaredTools {
  /** By the names under which models call them. */
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

/** Declares the gateway's tools among the client's own; undefined where the request has none. The first of a type counts. */
export function declareTools({ tools }: ChatRequest, own: CallTools): DeclaredTools | undefined {
  const given = tools ?? [];
  const taken = new Set(given.filter(isFunction).map((tool) => tool.function.name));
  const names = new Map<string, string>();
  const byName = new Map<string, ServerTool>();
  for (const entry of given) {
    const tool = isFunction(entry) ? undefined : own.of(entry);
    if (tool === undefined || names.has(tool.type)) continue;
    const name = freeName(tool.declaration.function.name, taken);
    taken.add(name);
    names.set(tool.type, name);
    byName.set(name, tool);
  }
  if (byName.size === 0) return undefined;

  /** A choice of one of them by its type, as the client knows it. */
  function choiceOf(choice: ToolChoice | null | undefined): ToolChoice | null | undefined {
    if (typeof choice !== 'object' || choice === null || choice.type === 'function') return choice;
    const tool = own.of({ type: choice.type });
    const name = tool && names.get(tool.type);
    return name === undefined ? choice : { type: 'function', function: { name } };
  }

  return {
    byName,
    declare(request) {
      const declared = new Set<string>();
      const made = (request.tools ?? []).flatMap((entry): InnerTool[] => {
        const tool = isFunction(entry) ? undefined : own.of(entry);
        const name = tool && names.get(tool.type);
        if (tool === undefined || name === undefined) return [entry];
        if (declared.has(name)) return [];
        declared.add(name);
        const { declaration } = tool;
        return [{ ...declaration, function: { ...declaration.function, name } }];
      });
      if (declared.size === 0) return request;
      return { ...request, tools: made, tool_choice: choiceOf(request.tool_choice) ?? null };
    },
  };
}
