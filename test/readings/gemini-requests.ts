/**
 * Reads recorded requests of the Gemini wire: as the equivalent chat request of a client, and in a normal form in which
 * requests with the same meaning are equal.
 */
import type { ChatRequest, InnerTool, Message, Slot, ToolCall } from '../../src/schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { array, object } from './recordings.ts';

const WIRE = 'gemini-generate-content';

/** Schemas and the data of clients and tools are values: the names inside them are kept. */
const VALUES = new Set(['args', 'response', 'parametersJsonSchema', 'responseJsonSchema', 'parameters']);

/** The provider reads both spellings of fields. */
function camel(value: JsonValue | undefined): JsonValue {
  if (Array.isArray(value)) return value.map(camel);
  if (typeof value !== 'object' || value === null) return value ?? null;
  return Object.fromEntries(
    Object.entries(value).map(([name, inside]) => {
      const camelName = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
      return [camelName, VALUES.has(camelName) ? inside : camel(inside)];
    }),
  );
}

/** The chat request, and the normal form. */
export function decodeRequest(body: JsonObject): { request: ChatRequest; normal: JsonValue } {
  const camelBody = object(camel(body));
  const contents = array(camelBody['contents']).map(object);
  const system = array(object(camelBody['systemInstruction'])['parts']).map(object);
  const config = object(camelBody['generationConfig']);
  const messages: Message[] = system.length === 0 ? [] : [{ role: 'system', content: system.map(textOf) }];
  for (const content of contents) messages.push(...decodeContent(content));
  const request: ChatRequest = { messages };
  const tools = array(camelBody['tools']).map(object).flatMap(decodeTools);
  if (tools.length > 0) request.tools = tools;
  const choice = object(object(camelBody['toolConfig'])['functionCallingConfig']);
  const allowed = array(choice['allowedFunctionNames']);
  if (choice['mode'] === 'ANY') {
    request.tool_choice =
      allowed.length === 1 ? { type: 'function', function: { name: String(allowed[0]) } } : 'required';
  }
  if (choice['mode'] === 'NONE') request.tool_choice = 'none';
  if (choice['mode'] === 'VALIDATED')
    for (const tool of tools)
      if (tool.type === 'function') Object.assign((tool as { function: object }).function, { strict: true });
  if (typeof config['temperature'] === 'number') request.temperature = config['temperature'];
  if (config['responseJsonSchema'] !== undefined) {
    const schema = object(config['responseJsonSchema']);
    request.response_format = { type: 'json_schema', json_schema: { name: 'answer', schema } };
  }
  return { request, normal: normalOf(camelBody, contents, config) };
}

function textOf(part: JsonObject): { type: 'text'; text: string } {
  return { type: 'text', text: String(part['text']) };
}

function decodeContent({ role, parts: original }: JsonObject): Message[] {
  const parts = array(original).map(object);
  if (role === 'model') return [decodeModel(parts)];
  const results = parts.filter((part) => part['functionResponse'] !== undefined).map(decodeResult);
  const others = parts.filter((part) => part['functionResponse'] === undefined);
  if (others.length === 0) return results;
  return [...results, { role: 'user', content: others.map(decodePart) }];
}

function decodePart(part: JsonObject) {
  if (part['text'] !== undefined) return textOf(part);
  const { mimeType, data } = object(part['inlineData']);
  const file = object(part['fileData']);
  const url = part['inlineData'] === undefined ? String(file['fileUri']) : `data:${mimeType};base64,${data}`;
  // The gateway fetches an address that only Vertex AI reads by itself: the recorded form is kept whole.
  if (/upload\.wikimedia/.test(url)) return { type: 'native' as const, wire: WIRE, block: part } as const;
  const type = String(mimeType ?? file['mimeType']);
  if (type.startsWith('image/')) return { type: 'image_url' as const, image_url: { url } };
  if (type.startsWith('video/')) return { type: 'video_url' as const, video_url: { url } };
  return { type: 'file' as const, file: { file_data: url } };
}

function decodeResult(part: JsonObject): Message {
  const { id, name, response, ...rest } = object(part['functionResponse']);
  const message: Message = { role: 'tool', content: JSON.stringify(response), name: String(name) };
  if (id !== undefined) message.tool_call_id = String(id);
  if (Object.keys(rest).length > 0) message.ext = { wire: WIRE, rest };
  return message;
}

function decodeModel(parts: JsonObject[]): Message {
  const message: Message = { role: 'assistant', content: null };
  const texts: { type: 'text'; text: string }[] = [];
  const calls: ToolCall[] = [];
  const natives: JsonObject[] = [];
  const order: Slot[] = [];
  for (const part of parts) {
    const { thoughtSignature, text, functionCall, ...others } = part;
    const rest = thoughtSignature === undefined ? {} : { thoughtSignature };
    if (text !== undefined) {
      order.push({ kind: 'text', at: texts.length, ext: { wire: WIRE, rest: { ...others, ...rest } } });
      texts.push({ type: 'text', text: String(text) });
    } else if (functionCall !== undefined) {
      const { id, name, args } = object(functionCall);
      order.push({ kind: 'call', at: calls.length });
      calls.push({
        id: String(id ?? ''),
        type: 'function',
        function: { name: String(name), arguments: JSON.stringify(args ?? {}) },
        ext: { wire: WIRE, rest },
      });
    } else {
      order.push({ kind: 'native', at: natives.length });
      natives.push(part);
    }
  }
  if (texts.length > 0) message.content = texts;
  if (calls.length > 0) message.tool_calls = calls;
  message.ext = {
    wire: WIRE,
    rest: {},
    order,
    natives: natives.map((block) => ({ type: 'native', wire: WIRE, block })),
  };
  return message;
}

function decodeTools(tool: JsonObject): InnerTool[] {
  if (tool['functionDeclarations'] === undefined) return [{ type: 'native', wire: WIRE, block: tool }];
  return array(tool['functionDeclarations']).map((value) => {
    const { name, description, parametersJsonSchema, ...rest } = object(value);
    return {
      type: 'function',
      function: {
        name: String(name),
        ...(typeof description === 'string' ? { description } : {}),
        ...(parametersJsonSchema === undefined ? {} : { parameters: object(parametersJsonSchema) }),
      },
      ext: { wire: WIRE, rest },
    };
  });
}

/**
 * Adjacent turns of one role are one turn, and results are its first parts; settings that only clients have are
 * omitted.
 */
function normalOf(camelBody: JsonObject, contents: JsonObject[], config: JsonObject): JsonValue {
  const turns: JsonObject[] = [];
  for (const { role, parts: original } of contents) {
    const parts = array(original).map(object);
    const isResult = (part: JsonObject) => part['functionResponse'] !== undefined;
    const sorted = [...parts.filter(isResult), ...parts.filter((part) => !isResult(part))];
    const last = turns.at(-1);
    if (last !== undefined && last['role'] === role) array(last['parts']).push(...sorted);
    else turns.push({ role: role ?? null, parts: sorted });
  }
  const system = array(object(camelBody['systemInstruction'])['parts']);
  const { temperature, responseJsonSchema, responseMimeType } = config;
  const tools = array(camelBody['tools']).map(object);
  const native = tools.filter((tool) => tool['functionDeclarations'] === undefined);
  const functions = tools.flatMap((tool) => array(tool['functionDeclarations']));
  const { functionCallingConfig: calling } = object(camelBody['toolConfig']);
  const { allowedFunctionNames, ...mode } = object(calling);
  // Allowing all existing functions is the same as allowing any.
  const isAll = array(allowedFunctionNames).length === functions.length;
  const functionCallingConfig = isAll || allowedFunctionNames === undefined ? mode : object(calling);
  return JSON.parse(
    JSON.stringify({
      turns,
      system,
      native,
      functions,
      functionCallingConfig,
      temperature,
      responseJsonSchema,
      responseMimeType,
    }),
  );
}
