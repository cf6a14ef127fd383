import { invalidField } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { JsonObject } from '../../schemas/json.ts';

/** Parts of assistant messages. Other output of the assistant is in items of its own. */
const OF_ASSISTANT: ReadonlySet<unknown> = new Set(['output_text', 'input_text', 'text', 'refusal']);

/** Checks rules of `input` beyond the schema. Throws a `GatewayError` 400 that names the field. */
export function checkInput(input: readonly JsonObject[]): void {
  let parts = 0;
  let reasoning = 0;
  for (const [i, item] of input.entries()) {
    const field = `input[${i}]`;
    const { type, role, content, output, summary } = item;
    for (const list of [content, output, summary]) if (Array.isArray(list)) parts += list.length;
    if (parts > limits.input_parts_max) {
      throw invalidField('input', `must have at most ${limits.input_parts_max} parts in all`);
    }
    if (type === 'reasoning') {
      reasoning += 1;
      if (reasoning > limits.input_reasoning_max) {
        throw invalidField('input', `must have at most ${limits.input_reasoning_max} reasoning items`);
      }
    }
    if (type === 'item_reference') {
      throw invalidField(
        `${field}.type`,
        'must not be "item_reference": items cannot be referred to by id; send the item itself (clients do so with store: false), or use previous_response_id if responses are stored',
      );
    }
    if (type === undefined || type === 'message') checkParts(content, `${field}.content`, role === 'assistant');
    if (output !== undefined) checkParts(output, `${field}.output`, false);
  }
}

function checkParts(parts: unknown, field: string, isAssistant: boolean): void {
  if (!Array.isArray(parts)) return;
  for (const [i, part] of (parts as JsonObject[]).entries()) {
    const at = `${field}[${i}]`;
    if (typeof part !== 'object' || part === null) throw invalidField(at, 'must be an object');
    const { type, image_url, file_id, file_url, file_data } = part;
    if (isAssistant && !OF_ASSISTANT.has(type)) {
      throw invalidField(`${at}.type`, 'must be one of "output_text", "refusal" in a message of the assistant');
    }
    if (!isAssistant && type === 'refusal') {
      throw invalidField(`${at}.type`, 'must not be "refusal": only messages of the assistant may have it');
    }
    if (type === 'input_image' && !image_url && !file_id) {
      throw invalidField(`${at}.image_url`, 'is required, or file_id');
    }
    if (type === 'input_file' && !file_url && !file_data && !file_id) {
      throw invalidField(`${at}.file_data`, 'is required, or file_url or file_id');
    }
  }
}
