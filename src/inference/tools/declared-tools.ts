import type { ChatRequest, FunctionTool, InnerTool, ToolChoice } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { CallTools, ServerTool } from './server-tools.ts';
import { shortName } from './tool-rules.ts';

type Named = { type: 'function'; function: { name: string } };
type Choice = Exclude<ToolChoice, string>;

/** The gateway's tools of one call as functions that models can call. */
export interface DeclaredTools {
  /** The tools that were declared so far, by the names of their functions. */
  byName: ReadonlyMap<string, ServerTool>;
  /** Replaces the gateway's tools in a request with functions. Returns the same object if the request has none. */
  declare(request: ChatRequest): ChatRequest;
}

function isFunction(tool: InnerTool): tool is FunctionTool {
  return tool.type === 'function';
}

/** A name that is not taken by a tool of the client. */
function freeName(name: string, taken: ReadonlySet<string>): string {
  if (!taken.has(name)) return name;
  let free = `gateway_${name}`;
  while (taken.has(free)) free += '_';
  return free;
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The list of an `allowed_tools` choice. Clients use both the flat and the nested form. */
function allowedList(choice: Choice): JsonObject {
  const object = choice as JsonObject;
  const nested = object['allowed_tools'];
  return nested !== undefined && isObject(nested) ? nested : object;
}

function withList(choice: Choice, list: JsonObject): ToolChoice {
  return allowedList(choice) === choice ? { ...list, type: choice.type } : { ...choice, allowed_tools: list };
}

/** The same choice of several tools, without the obligation to call one. */
export function unforced(choice: Choice): ToolChoice {
  return withList(choice, { ...allowedList(choice), mode: 'auto' });
}

/** Declares the gateway's tools beside the client's own, in requests that the adapters have processed. The first tool of a type is used. */
export function declareTools({ tools }: ChatRequest, own: CallTools): DeclaredTools {
  const taken = new Set((tools ?? []).filter(isFunction).map((tool) => tool.function.name));
  /** Function names by type of tool, the same at every endpoint. */
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

  /** The function choice for a tool that the client names by its type. Undefined if it is not a declared tool. */
  function chosen({ type }: { type?: JsonValue | undefined }, declared: ReadonlySet<string>): Named | undefined {
    if (typeof type !== 'string') return undefined;
    // Names of the providers' own searches, which the gateway's search replaces.
    const short = shortName(type).replace(/^web_search.*/, 'web_search');
    const name = names.get(`gateway:${short}`);
    return name === undefined || !declared.has(name) ? undefined : { type: 'function', function: { name } };
  }

  function choiceOf(choice: ToolChoice | null | undefined, declared: ReadonlySet<string>) {
    if (typeof choice !== 'object' || choice === null || choice.type === 'function') return choice;
    if (choice.type !== 'allowed_tools') return chosen(choice, declared) ?? choice;
    const list = allowedList(choice);
    if (!Array.isArray(list['tools'])) return choice;
    const tools = list['tools'].map((entry) => (isObject(entry) ? (chosen(entry, declared) ?? entry) : entry));
    return withList(choice, { ...list, tools });
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
      return { ...request, tools: made, tool_choice: choiceOf(request.tool_choice, declared) ?? null };
    },
  };
}
