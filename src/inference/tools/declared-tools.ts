import type { ChatRequest, FunctionTool, InnerTool, ToolChoice } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { CallTools, ServerTool } from './server-tools.ts';
import { shortName } from './tool-rules.ts';

type Named = { type: 'function'; function: { name: string } };
type Choice = Exclude<ToolChoice, string>;

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

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What `allowed_tools` says: both the flat and the nested form are in use. */
function allowedList(choice: Choice): JsonObject {
  const object = choice as JsonObject;
  const nested = object['allowed_tools'];
  return nested !== undefined && isObject(nested) ? nested : object;
}

function withList(choice: Choice, list: JsonObject): ToolChoice {
  return allowedList(choice) === choice ? { ...list, type: choice.type } : { ...choice, allowed_tools: list };
}

/** The same choice of several tools, none of which has to be called any more. */
export function unforced(choice: Choice): ToolChoice {
  return withList(choice, { ...allowedList(choice), mode: 'auto' });
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

  /** What stands for a choice of one of them by its type, as the client knows it; undefined: it is of none that is declared. */
  function chosen({ type }: { type?: JsonValue | undefined }, declared: ReadonlySet<string>): Named | undefined {
    if (typeof type !== 'string') return undefined;
    // Providers' own searches, in whose place ours stands.
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
