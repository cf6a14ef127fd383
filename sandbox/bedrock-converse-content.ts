import type { JsonObject } from './json.ts';
import { isObject, objectsOf, Refusal, textOf } from './prompt.ts';
import { thinkingSignature } from './signature.ts';

/** The blocks that each place accepts. */
export const members = {
  user: new Set('text image document video audio toolResult guardContent cachePoint searchResult'.split(' ')),
  assistant: new Set('text toolUse toolResult reasoningContent citationsContent cachePoint'.split(' ')),
  system: new Set('text cachePoint guardContent'.split(' ')),
  result: new Set('text json image document video searchResult'.split(' ')),
};
const formats: Record<string, Set<string>> = {
  image: new Set('png jpeg gif webp'.split(' ')),
  document: new Set('pdf csv doc docx xls xlsx html txt md'.split(' ')),
  video: new Set('mkv mov mp4 webm flv mpeg mpg wmv three_gp'.split(' ')),
  audio: new Set('aac flac m4a mka mkv mp3 mp4 mpeg mpga ogg opus pcm wav webm x-aac'.split(' ')),
};

/** The refusal of an invalid request. */
export function invalid(message: string): Refusal {
  return new Refusal(400, message, 'ValidationException');
}

/** The single member of a block. */
function kindOf(block: JsonObject, allowed: Set<string>, where: string): string {
  const kinds = Object.keys(block);
  const [kind = ''] = kinds;
  if (kinds.length !== 1) throw invalid(`The content block at ${where} must have exactly one member.`);
  if (!allowed.has(kind)) throw invalid(`The member ${kind} is not permitted at ${where}.`);
  return kind;
}

function checkSource(media: JsonObject, kind: string, where: string): void {
  if (formats[kind]?.has(textOf(media['format'])) !== true) {
    throw invalid(`The format ${textOf(media['format'])} at ${where}.${kind} is not one of ${[...formats[kind]!]}.`);
  }
  const source = media['source'];
  if (!isObject(source) || Object.keys(source).length !== 1)
    throw invalid(`${where}.${kind}.source: one member expected`);
  const bytes = source['bytes'];
  if (bytes === undefined) {
    const location = source['s3Location'];
    if (!isObject(location) || !textOf(location['uri']).startsWith('s3://')) throw invalid(`${where}: no s3 location`);
  } else if (textOf(bytes) === '' || !/^[A-Za-z0-9+/]+={0,2}$/.test(textOf(bytes))) {
    throw invalid(`Unable to decode the bytes at ${where}.${kind}.`);
  }
}

/** Refuses blocks that the service refuses. `names` are the names of the documents before. */
export function checkContent(content: JsonObject[], allowed: Set<string>, where: string, names: Set<string>): void {
  if (content.length === 0) throw invalid(`The content field at ${where} is empty. Add a ContentBlock to the content.`);
  for (const [at, block] of content.entries()) {
    const place = `${where}.${at}`;
    const kind = kindOf(block, allowed, place);
    const value = block[kind];
    if (kind === 'text') {
      // The service accepts a line break before a cache point (recorded).
      const next = content[at + 1];
      if (textOf(value).trim() === '' && !(value === '\n' && next?.['cachePoint'] !== undefined)) {
        throw invalid(
          `The text field in the ContentBlock object at ${place} is blank. Add text to the text field, and try again.`,
        );
      }
      continue;
    }
    if (!isObject(value)) {
      if (kind === 'json') continue;
      throw invalid(`${place}.${kind} must be an object`);
    }
    if (kind in formats) checkSource(value, kind, place);
    if (kind === 'document') checkDocument(value, place, names);
    if (kind === 'cachePoint') checkCachePoint(content[at - 1], value, place);
    if (kind === 'toolUse') checkToolUse(value, place);
    if (kind === 'toolResult') {
      checkContent(objectsOf(value['content']), members.result, `${place}.toolResult.content`, names);
    }
    if (kind === 'reasoningContent') checkReasoning(value, place);
  }
  const hasDocument = content.some((block) => block['document'] !== undefined);
  if (allowed === members.user && hasDocument && !content.some((block) => block['text'] !== undefined)) {
    throw invalid(`Add text content to ${where}: a document needs a text beside it.`);
  }
}

function checkDocument({ name }: JsonObject, where: string, names: Set<string>): void {
  const documentName = textOf(name);
  if (!/^[A-Za-z0-9 ()[\]-]{1,200}$/.test(documentName) || documentName.includes('  ')) {
    throw invalid(
      `The document file name at ${where} can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and square brackets. The name can't contain more than one consecutive whitespace character.`,
    );
  }
  if (names.has(documentName)) throw invalid(`Document names must be unique: ${documentName}.`);
  names.add(documentName);
}

function checkCachePoint(before: JsonObject | undefined, { type, ttl }: JsonObject, where: string): void {
  if (type !== 'default') throw invalid(`${where}.cachePoint.type must be default`);
  if (ttl !== undefined && ttl !== '5m' && ttl !== '1h') throw invalid(`${where}.cachePoint.ttl must be 5m or 1h`);
  if (before === undefined || before['cachePoint'] !== undefined) throw invalid(`${where}: nothing to cache`);
  if (before['document'] !== undefined || before['video'] !== undefined) {
    throw invalid(`${where}: a cache point cannot stand directly after a document`);
  }
}

const call_id = /^[A-Za-z0-9_-]{1,64}$/;

function checkToolUse({ toolUseId, name, input }: JsonObject, where: string): void {
  if (!call_id.test(textOf(toolUseId))) throw invalid(`${where}.toolUse.toolUseId must match ${call_id.source}`);
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(textOf(name))) throw invalid(`${where}.toolUse.name is no name of a tool`);
  if (!isObject(input))
    throw invalid(
      `The format of the value at ${where}.toolUse.input is invalid. Provide a json object for the field and try again.`,
    );
}

function checkReasoning({ reasoningText, redactedContent }: JsonObject, where: string): void {
  if (redactedContent !== undefined) return;
  const reasoning = isObject(reasoningText) ? reasoningText : {};
  if (reasoning['signature'] !== thinkingSignature(textOf(reasoning['text']))) {
    throw invalid(`The model returned the following errors: ${where}: Invalid \`signature\` in \`thinking\` block`);
  }
}
