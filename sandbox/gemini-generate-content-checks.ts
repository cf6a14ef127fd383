import type { IncomingHttpHeaders } from 'node:http';
import type { JsonObject, JsonValue } from './json.ts';
import { MODEL_CONTEXT_TOKENS, MODEL_OUTPUT_TOKENS } from './models.ts';
import { isObject, objectsOf, Refusal, textOf } from './prompt.ts';
import { thinkingSignature } from './signature.ts';

// https://ai.google.dev/api/generate-content; the sandbox adds `sandbox`. Every field is also accepted in snake case.
const body_fields = new Set(
  'contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent labels serviceTier sandbox'.split(
    ' ',
  ),
);
const config_fields = new Set(
  (
    'candidateCount maxOutputTokens temperature topP topK seed presencePenalty frequencyPenalty stopSequences ' +
    'responseLogprobs logprobs responseMimeType responseSchema responseJsonSchema responseModalities speechConfig ' +
    'imageConfig thinkingConfig mediaResolution enableEnhancedCivicAnswers'
  ).split(' '),
);
const part_fields = new Set(
  'text inlineData fileData functionCall functionResponse executableCode codeExecutionResult toolCall toolResponse'.split(
    ' ',
  ),
);
const beside_fields = new Set('thought thoughtSignature videoMetadata partMetadata mediaResolution'.split(' '));
const stop_sequences_max = 5;

/** Documented for calls of other models, in base64 (https://ai.google.dev/gemini-api/docs/thought-signatures). */
const bypass = Buffer.from('skip_thought_signature_validator').toString('base64');

function invalid(message: string): Refusal {
  return new Refusal(400, message, 'INVALID_ARGUMENT');
}

function unknownField(name: string, where: string): Refusal {
  const at = where === '' ? '' : ` at '${where}'`;
  return invalid(`Invalid JSON payload received. Unknown name "${name}"${at}: Cannot find field.`);
}

function camel(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function checkNames(object: JsonObject, known: ReadonlySet<string>, where: string): void {
  for (const name of Object.keys(object)) if (!known.has(camel(name))) throw unknownField(name, where);
}

function checkNumber(config: JsonObject, name: string, least: number, most: number): void {
  const value = config[name];
  if (value === undefined) return;
  if (typeof value !== 'number')
    throw invalid(`Invalid value at 'generation_config.${name}' (TYPE_FLOAT), "${String(value)}"`);
  if (value < least || value > most) {
    throw invalid(
      `Unable to submit request because ${name} has an invalid value: ${value}. It must be from ${least} to ${most}.`,
    );
  }
}

function checkConfig(config: JsonObject): void {
  checkNames(config, config_fields, 'generation_config');
  checkNumber(config, 'temperature', 0, 2);
  checkNumber(config, 'topP', 0, 1);
  checkNumber(config, 'maxOutputTokens', 1, MODEL_OUTPUT_TOKENS);
  checkNumber(config, 'seed', -(2 ** 31), 2 ** 31 - 1);
  checkNumber(config, 'logprobs', 0, 20);
  for (const name of ['maxOutputTokens', 'seed', 'topK', 'logprobs']) {
    const value = config[name];
    if (value !== undefined && !Number.isInteger(value))
      throw invalid(`Invalid value at 'generation_config.${name}' (TYPE_INT32), ${String(value)}`);
  }
  if (config['logprobs'] !== undefined && config['responseLogprobs'] !== true) {
    throw invalid('logprobs may only be specified if response_logprobs is true.');
  }
  for (const name of ['presencePenalty', 'frequencyPenalty']) {
    if (config[name] !== undefined) throw invalid('Penalty is not enabled for this model');
  }
  const stop = config['stopSequences'];
  if (Array.isArray(stop) && (stop.length > stop_sequences_max || stop.includes(''))) {
    throw invalid(
      `Unable to submit request because it has ${stop.length} stop sequences, at most ${stop_sequences_max} that are not empty are supported.`,
    );
  }
  if (config['responseJsonSchema'] !== undefined && config['responseMimeType'] !== 'application/json') {
    throw invalid('response_json_schema is only supported when response_mime_type is set to application/json.');
  }
  const thinking = config['thinkingConfig'];
  if (!isObject(thinking)) return;
  if (thinking['thinkingBudget'] !== undefined && thinking['thinkingLevel'] !== undefined) {
    throw invalid('You can only set only one of thinking budget and thinking level.');
  }
  const level = thinking['thinkingLevel'];
  if (level !== undefined && !['MINIMAL', 'LOW', 'MEDIUM', 'HIGH'].includes(textOf(level))) {
    throw invalid(`Invalid value at 'generation_config.thinking_config.thinking_level', "${textOf(level)}"`);
  }
}

/** Checks the parts of a content. */
function checkPart(part: JsonObject, where: string): void {
  const held = Object.keys(part).filter((name) => part_fields.has(name));
  for (const name of Object.keys(part)) {
    if (!part_fields.has(camel(name)) && !beside_fields.has(camel(name))) throw unknownField(name, where);
  }
  if (held.length !== 1) throw invalid(`${where}: required oneof field 'data' must have one initialized field`);
  for (const [name, field] of [
    ['inlineData', 'data'],
    ['fileData', 'fileUri'],
  ] as const) {
    const value = part[name];
    if (value === undefined) continue;
    if (!isObject(value) || textOf(value[field]) === '')
      throw invalid(`${where}.${name}.${field}: required field is empty`);
    if (name === 'inlineData' && !/^[a-z]+\/[\w.+-]+/.test(textOf(value['mimeType']))) {
      throw invalid(`Unable to submit request because it must have a valid mimeType in ${where}.`);
    }
    if (name === 'inlineData' && !/^[A-Za-z0-9+/_-]*={0,2}$/.test(textOf(value[field]))) {
      throw invalid(`Invalid value at '${where}.inline_data.data' (TYPE_BYTES), Base64 decoding failed`);
    }
  }
  for (const name of ['functionCall', 'functionResponse'] as const) {
    const value = part[name];
    if (value === undefined) continue;
    if (!isObject(value) || textOf(value['name']) === '') throw invalid(`${where}.${name}.name: Name cannot be empty.`);
    const object = value[name === 'functionCall' ? 'args' : 'response'];
    if (object !== undefined && !isObject(object)) throw invalid(`Invalid value at '${where}.${name}' (Struct)`);
  }
  const signature = part['thoughtSignature'];
  if (signature === undefined) return;
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(textOf(signature))) {
    throw invalid(
      `Invalid value at '${where}.thought_signature' (TYPE_BYTES), Base64 decoding failed for "${textOf(signature)}"`,
    );
  }
  if (signature !== bypass && signature !== signatureOf(part)) throw invalid('Thought signature is not valid.');
}

/** The signature of a part: of the name and arguments of a call, or of a text. */
export function signatureOf(part: JsonObject): string {
  const call = part['functionCall'];
  const text = isObject(call) ? `${textOf(call['name'])} ${JSON.stringify(call['args'] ?? {})}` : textOf(part['text']);
  return Buffer.from(thinkingSignature(text)).toString('base64');
}

export function partsOf(content: JsonValue | undefined): JsonObject[] {
  return isObject(content) ? objectsOf(content['parts']) : [];
}

/** Requires that the results directly follow their calls, with the same names in the same order. */
function checkCalls(contents: JsonObject[]): void {
  for (const [at, content] of contents.entries()) {
    const calls = partsOf(content).flatMap((part) => (isObject(part['functionCall']) ? [part['functionCall']] : []));
    const former = at === 0 ? [] : partsOf(contents[at - 1]);
    const called = former.flatMap((part) => (isObject(part['functionCall']) ? [part['functionCall']] : []));
    const results = partsOf(content).flatMap((part) =>
      isObject(part['functionResponse']) ? [part['functionResponse']] : [],
    );
    if (calls.length > 0 && content['role'] !== 'model')
      throw invalid('Please ensure that function call turn is of role model.');
    if (results.length !== called.length) {
      throw invalid(
        'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
      );
    }
    for (const [i, result] of results.entries()) {
      const fits = called[i]!['name'] === result['name'] && (result['id'] ?? called[i]!['id']) === called[i]!['id'];
      if (!fits) throw invalid(`Function response ${textOf(result['name'])} does not answer its call.`);
    }
    if (calls.length > 0 && at === contents.length - 1) {
      throw invalid('Please ensure that function call turn comes immediately before a function response turn.');
    }
  }
}

/** Requires a signature at the first call of each step after the last user turn (Gemini 3 and later). */
function checkSignatures(contents: JsonObject[]): void {
  const spoken = contents.findLastIndex(
    (content) => content['role'] === 'user' && !partsOf(content).some((part) => part['functionResponse'] !== undefined),
  );
  for (const [at, content] of contents.entries()) {
    const first = partsOf(content).find((part) => part['functionCall'] !== undefined);
    if (at <= spoken || first === undefined || first['thoughtSignature'] !== undefined) continue;
    const name = isObject(first['functionCall']) ? textOf(first['functionCall']['name']) : '';
    throw invalid(
      `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly. Function call \`${name}\`, position ${at}.`,
    );
  }
}

function checkTools(body: JsonObject): void {
  const declared = objectsOf(body['tools']).flatMap((tool) => objectsOf(tool['functionDeclarations']));
  const names = declared.map((one) => textOf(one['name']));
  for (const [at, declaration] of declared.entries()) {
    const name = names[at]!;
    if (!/^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$/.test(name)) {
      throw invalid(
        `Invalid function name: "${name}". Must start with a letter or an underscore. Must be alphanumeric, dots, colons or dashes, with a maximum length of 64.`,
      );
    }
    if (names.indexOf(name) !== at) throw invalid(`Duplicate function declaration found: ${name}`);
    checkNames(
      declaration,
      new Set('name description parameters parametersJsonSchema response responseJsonSchema behavior'.split(' ')),
      'tools.function_declarations',
    );
  }
  const config = isObject(body['toolConfig']) ? body['toolConfig']['functionCallingConfig'] : undefined;
  if (!isObject(config)) return;
  if (names.length === 0) throw invalid('Function calling config is set without function_declarations.');
  const allowed = config['allowedFunctionNames'];
  if (allowed === undefined) return;
  if (config['mode'] !== 'ANY' && config['mode'] !== 'VALIDATED') {
    throw invalid('Allowed function names should only be set when function calling mode is ANY or VALIDATED.');
  }
  const stray = Array.isArray(allowed) ? allowed.find((name) => !names.includes(textOf(name))) : undefined;
  if (stray !== undefined) throw invalid(`Function name ${textOf(stray)} is not among the declared ones.`);
}

/** Refuses what the Gemini API refuses for models of the third generation, including unknown fields. */
export function checkGemini(body: JsonObject, _headers: IncomingHttpHeaders): void {
  checkNames(body, body_fields, '');
  const contents = objectsOf(body['contents']);
  if (contents.length === 0) throw invalid('* GenerateContentRequest.contents: contents is not specified');
  for (const [at, content] of contents.entries()) {
    if (content['role'] !== 'user' && content['role'] !== 'model')
      throw invalid('Please use a valid role: user, model.');
    const parts = partsOf(content);
    if (parts.length === 0)
      throw invalid(`Unable to submit request because it must have at least one part in contents[${at}].`);
    for (const [i, part] of parts.entries()) checkPart(part, `contents[${at}].parts[${i}]`);
  }
  if (contents[0]!['role'] !== 'user') {
    throw invalid('Please ensure that multiturn requests begin with a user turn.');
  }
  for (const part of partsOf(body['systemInstruction'])) {
    if (textOf(part['text']) === '') throw invalid('system_instruction.parts: only text is supported');
  }
  checkCalls(contents);
  checkSignatures(contents);
  checkTools(body);
  if (isObject(body['generationConfig'])) checkConfig(body['generationConfig']);
}

/** The refusal of a prompt that does not fit the model. */
export function promptTooLong(input_tokens: number): Refusal {
  return invalid(
    `The input token count (${input_tokens}) exceeds the maximum number of tokens allowed (${MODEL_CONTEXT_TOKENS}).`,
  );
}
