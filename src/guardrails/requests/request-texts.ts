import type {
  ChatRequest,
  Ext,
  FilePart,
  InnerPart,
  InnerTool,
  Message,
  MessageExt,
  ReasoningDetail,
  RequestExt,
  ToolCall,
} from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { Place, Visit } from '../text-places.ts';
import { fileTexts } from './file-texts.ts';
import {
  freeTexts,
  jsonTexts,
  mapEntries,
  mapFields,
  pointerText,
  schemaTexts,
  sealedText,
  wireTexts,
} from './wire-texts.ts';

/** Fields that select the model and the user. No model reads them. Users reach upstreams as a hash. */
const CHOICES = new Set(['model', 'models', 'route', 'user', 'session_id', 'logit_bias', 'messages', 'ext']);

/** How the texts of a request are visited. */
export interface TextRules {
  visit: Visit;
  /** Whether rewritten reasoning is restored before it reaches its signer. Otherwise its signature is removed. */
  keeps_signatures: boolean;
}

/**
 * Visits every text of a request and returns the request with the results, or the same object if nothing changes. The
 * conversation is visited last and in order, so that numbered placeholders stay the same when the conversation continues.
 */
export function requestTexts(request: ChatRequest, rules: TextRules): ChatRequest {
  const { visit } = rules;
  const source = request as unknown as JsonObject;
  const mapped = mapFields(source, 'body', visit, (key, member) =>
    CHOICES.has(key) ? member : fieldTexts(key, member, visit),
  );
  const ext = request.ext && extTexts(request.ext, '', visit);
  const messages = messageTexts(request.messages, rules);
  if (mapped === source && ext === request.ext && messages === request.messages) return request;
  return { ...(mapped as unknown as ChatRequest), messages, ...(ext === undefined ? {} : { ext }) };
}

function fieldTexts(key: string, member: JsonValue, visit: Visit): JsonValue {
  switch (key) {
    case 'provider':
      // The other members select endpoints.
      return mapFields(member as JsonObject, 'provider', visit, (name, value) =>
        name === 'options' ? wireTexts(value, 'provider.options', visit) : value,
      );
    case 'tools':
      return Array.isArray(member)
        ? (mapEntries(member as unknown as InnerTool[], (tool, i) => toolTexts(tool, `tools[${i}]`, visit)) as never)
        : member;
    case 'prediction':
      return mapFields(member as JsonObject, 'prediction', visit, (name, value) =>
        name === 'content' ? wireTexts(value, 'prediction.content', visit, 'content') : value,
      );
    default:
      return wireTexts(member, key, visit, key);
  }
}

function toolTexts(tool: InnerTool, field: string, visit: Visit): InnerTool {
  if (tool.type === 'native') {
    const native = tool as Extract<InnerTool, { type: 'native' }>;
    const block = wireTexts(native.block, field, visit) as JsonObject;
    return block === native.block ? tool : { ...native, block };
  }
  const { ext } = tool as { ext?: Ext };
  const source = tool as unknown as JsonObject;
  const mapped = mapFields(source, field, visit, (key, member) => {
    if (key === 'ext') return member;
    if (key === 'function') return functionTexts(member as JsonObject, `${field}.function`, visit);
    return wireTexts(member, `${field}.${key}`, visit, key);
  });
  const rest = ext && extTexts(ext, field, visit);
  return (rest === ext ? mapped : { ...mapped, ext: rest }) as unknown as InnerTool;
}

function functionTexts(source: JsonObject, field: string, visit: Visit): JsonObject {
  return mapFields(source, field, visit, (key, member) =>
    key === 'parameters'
      ? schemaTexts(member, `${field}.parameters`, visit)
      : wireTexts(member, `${field}.${key}`, visit, key),
  );
}

/** Visits the remaining members of a wire object. For the whole request (`field` is empty) fields have the client's names. */
function extTexts<E extends Ext | MessageExt | RequestExt>(ext: E, field: string, visit: Visit): E {
  const rest = mapFields(ext.rest, field || 'body', visit, (key, member) =>
    wireTexts(member, field === '' ? key : `${field}.${key}`, visit, key),
  );
  return rest === ext.rest ? ext : { ...ext, rest };
}

function messageTexts(messages: Message[], rules: TextRules): Message[] {
  let run = 0;
  return mapEntries(messages, (message, i) => {
    // Some wires join consecutive messages of one role. A tool result stands alone.
    if (message.role === 'tool' || message.role !== messages[i - 1]?.role) run += 1;
    return oneMessage(message, { ...rules, field: `messages[${i}]`, run });
  });
}

interface MessageContext extends TextRules {
  field: string;
  run: number;
}

function oneMessage(message: Message, context: MessageContext): Message {
  const { visit, field } = context;
  const { ext } = message;
  const source = message as unknown as JsonObject;
  const mapped = mapFields(source, field, visit, (key, member): JsonValue => {
    switch (key) {
      case 'role':
      case 'ext':
        return member;
      case 'content':
        return contentTexts(message, context) as JsonValue;
      case 'name':
        return typeof member === 'string' ? visit(member, { field: `${field}.name`, kind: 'text' }) : member;
      case 'tool_calls':
        return mapEntries(member as unknown as ToolCall[], (call, i) =>
          callTexts(call, `${field}.tool_calls[${i}]`, visit),
        ) as unknown as JsonValue;
      case 'reasoning_details':
        return mapEntries(member as unknown as ReasoningDetail[], (detail, i) =>
          detailTexts(detail, `${field}.reasoning_details[${i}]`, context),
        ) as unknown as JsonValue;
      default:
        return wireTexts(member, `${field}.${key}`, visit, key);
    }
  });
  const rest = ext && messageExt(ext, field, visit);
  return (rest === ext ? mapped : { ...mapped, ext: rest }) as unknown as Message;
}

function contentTexts({ role, content }: Message, context: MessageContext): Message['content'] {
  const { visit, field, run } = context;
  if (content == null) return content;
  if (typeof content === 'string') {
    const place: Place = { field: `${field}.content`, kind: 'text', run };
    return role === 'tool' ? jsonTexts(content, place.field, visit) : visit(content, place);
  }
  return mapEntries(content, (part, i) => partTexts(part, { ...context, field: `${field}.content[${i}]` }, role));
}

function partTexts(part: InnerPart, { visit, field, run }: MessageContext, role: Message['role']): InnerPart {
  if (part.type === 'native') {
    const block = wireTexts(part.block, field, visit) as JsonObject;
    return block === part.block ? part : { ...part, block };
  }
  const { ext } = part;
  const source = part as unknown as JsonObject;
  const mapped = mapFields(source, field, visit, (key, member): JsonValue => {
    if (key === 'type' || key === 'ext') return member;
    if (key === 'text' && typeof member === 'string') {
      const isJson = role === 'tool';
      return isJson
        ? jsonTexts(member, `${field}.text`, visit, run)
        : visit(member, { field: `${field}.text`, kind: 'text', run });
    }
    if (key === 'file') return fileMembers(member as JsonObject, `${field}.file`, visit);
    if (key === 'image_url' || key === 'video_url') {
      return mapFields(member as JsonObject, `${field}.${key}`, visit, (name, value) =>
        name === 'url' && typeof value === 'string'
          ? pointerText(value, `${field}.${key}.url`, visit)
          : wireTexts(value, `${field}.${key}.${name}`, visit, name),
      );
    }
    return wireTexts(member, `${field}.${key}`, visit, key);
  });
  const rest = ext && extTexts(ext, field, visit);
  return (rest === ext ? mapped : { ...mapped, ext: rest }) as unknown as InnerPart;
}

/** A file by URL, by content (a data URL or base64), or by its id at a provider. */
function fileMembers(file: FilePart['file'] | JsonObject, field: string, visit: Visit): JsonObject {
  return mapFields(file as JsonObject, field, visit, (key, member) => {
    if (typeof member !== 'string') return wireTexts(member, `${field}.${key}`, visit, key);
    if (key === 'filename') return visit(member, { field: `${field}.filename`, kind: 'text' });
    if (key !== 'file_data') return wireTexts(member, `${field}.${key}`, visit, key);
    if (/^(?:data:|https?:|gs:|s3:)/i.test(member)) return pointerText(member, `${field}.file_data`, visit);
    return fileTexts(member, '', `${field}.file_data`, visit);
  });
}

function callTexts(call: ToolCall, field: string, visit: Visit): ToolCall {
  const { ext } = call;
  const source = call as unknown as JsonObject;
  const mapped = mapFields(source, field, visit, (key, member) =>
    key === 'ext' ? member : wireTexts(member, `${field}.${key}`, visit, key),
  );
  const rest = ext && extTexts(ext, field, visit);
  return (rest === ext ? mapped : { ...mapped, ext: rest }) as unknown as ToolCall;
}

function detailTexts(
  detail: ReasoningDetail,
  field: string,
  { visit, keeps_signatures }: MessageContext,
): ReasoningDetail {
  const mapped = mapFields(detail, field, visit, (key, member) => {
    if (typeof member !== 'string') return member;
    if (key === 'text' || key === 'summary') return visit(member, { field: `${field}.${key}`, kind: 'text' });
    if (key === 'data' || key === 'signature') return sealedText(member, `${field}.${key}`, visit);
    return wireTexts(member, `${field}.${key}`, visit, key);
  });
  if (keeps_signatures || mapped.type !== 'reasoning.text' || mapped.signature == null) return mapped;
  if (detail.type !== 'reasoning.text' || mapped.text === detail.text) return mapped;
  const { signature: _, ...unsigned } = mapped;
  return unsigned;
}

function messageExt(ext: MessageExt, field: string, visit: Visit): MessageExt {
  const mapped = extTexts(ext, field, visit);
  const order =
    mapped.order &&
    mapEntries(mapped.order, (slot) => {
      const rest = slot.ext && extTexts(slot.ext, field, visit);
      return rest === slot.ext || rest === undefined ? slot : { ...slot, ext: rest };
    });
  const natives =
    mapped.natives &&
    mapEntries(mapped.natives, (native) => {
      const block = wireTexts(native.block, field, visit) as JsonObject;
      return block === native.block ? native : { ...native, block };
    });
  if (order === mapped.order && natives === mapped.natives) return mapped;
  return { ...mapped, ...(order === undefined ? {} : { order }), ...(natives === undefined ? {} : { natives }) };
}

/** Visits the texts of a request that is not chat, with the client's names of the fields. */
export function bodyTexts(body: JsonObject, visit: Visit): JsonObject {
  return mapFields(body, 'body', visit, (key, member) => {
    // These upstreams receive the user unchanged, not as a hash.
    if (CHOICES.has(key) && key !== 'user') return member;
    if (key === 'provider') return fieldTexts(key, member, visit);
    if (key === 'input')
      return Array.isArray(member)
        ? mapEntries(member, (one, i) => inputTexts(one, `input[${i}]`, visit))
        : inputTexts(member, key, visit);
    return wireTexts(member, key, visit, key);
  });
}

/** One input of embeddings. */
function inputTexts(input: JsonValue, field: string, visit: Visit): JsonValue {
  if (!Array.isArray(input)) return freeTexts(input, field, visit);
  if (typeof input[0] === 'number') return input;
  return contentTexts(
    { role: 'user', content: input as never },
    { visit, field, run: 0, keeps_signatures: false },
  ) as JsonValue;
}
