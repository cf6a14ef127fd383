import { hash } from 'node:crypto';
import type { Faults } from './faults.ts';
import type { JsonObject } from './json.ts';
import { type Behaviour, MODEL_OUTPUT_TOKENS } from './models.ts';
import type { Answer, Block, Prompt } from './prompt.ts';
import { schemaSample } from './schema-sample.ts';
import { STORY_TOKENS, storyTokens } from './story.ts';
import { countTokens, tokensOf } from './tokens.ts';

function chosenTools(prompt: Prompt, behaviour: Behaviour): Prompt['tools'] {
  const choice = prompt.tool_choice;
  if (choice === 'none' || prompt.tools.length === 0) return [];
  if (typeof choice === 'object') return prompt.tools.filter((tool) => tool.name === choice.name);
  const calls_all = behaviour === 'tools' || behaviour === 'research';
  const wanted = choice === 'required' || (calls_all && prompt.tool_results.length === 0);
  if (!wanted) return [];
  return prompt.parallel && calls_all ? prompt.tools : prompt.tools.slice(0, 1);
}

/** The id of a call. It is unique in the conversation, as wires require: the conversation is longer when the next call is made. */
function callId(prompt: Prompt, ordinal: number): string {
  return hash('sha1', `${prompt.conversation}\n${prompt.input_tokens}\n${ordinal}`).slice(0, 24);
}

function jsonText(prompt: Prompt, schema: JsonObject): string {
  const value = Object.keys(schema).length === 0 ? { answer: prompt.user_text } : schemaSample(schema);
  return JSON.stringify(value);
}

/** A sentence with a link for each address in the results of tools. */
function linkedText(tool_results: readonly string[]): string {
  const urls = tool_results.flatMap((result) => result.match(/https?:\/\/[^\s"\\)<>]+/g) ?? []);
  // An address is not valid any more if a filter replaced a part of it.
  const addresses = [...new Set(urls)].filter((url) => URL.canParse(url));
  const links = addresses.map((url) => `🌍 ${new URL(url).host} knows it: [${new URL(url).host}](${url}).`);
  return links.length === 0 ? `The tools answered: ${tool_results.join('; ')}` : links.join('\n');
}

function textPieces(prompt: Prompt, behaviour: Behaviour, faults: Faults): string[] {
  if (prompt.schema !== undefined) return tokensOf(jsonText(prompt, prompt.schema));
  if (prompt.tool_results.length > 0 && behaviour === 'research') return tokensOf(linkedText(prompt.tool_results));
  if (prompt.tool_results.length > 0) return tokensOf(`The tools answered: ${prompt.tool_results.join('; ')}`);
  if (behaviour === 'story') {
    // One token beyond the bound shows that the bound applies.
    const most = Math.min(prompt.tokens_max, MODEL_OUTPUT_TOKENS) + 1;
    return storyTokens(prompt.user_text, Math.min(faults.tokens || STORY_TOKENS, most));
  }
  if (behaviour === 'json') return tokensOf(jsonText(prompt, {}));
  const media: string[] = [];
  if (prompt.images > 0) media.push(`${prompt.images} image${prompt.images === 1 ? '' : 's'}`);
  if (prompt.files > 0) media.push(`${prompt.files} file${prompt.files === 1 ? '' : 's'}`);
  const text = `${media.length > 0 ? `[${media.join(', ')}] ` : ''}${prompt.user_text}`;
  return tokensOf(text.startsWith(prompt.prefill) ? text.slice(prompt.prefill.length) : text);
}

/** Ends the text before the first stop sequence that occurs in it. */
function cutAtStop(pieces: string[], stop: string[]): { pieces: string[]; stop_sequence: string | null } {
  if (stop.length === 0) return { pieces, stop_sequence: null };
  const text = pieces.join('');
  let end = text.length;
  let stop_sequence: string | null = null;
  for (const sequence of stop) {
    const at = text.indexOf(sequence);
    if (sequence !== '' && at >= 0 && at < end) {
      end = at;
      stop_sequence = sequence;
    }
  }
  return stop_sequence === null ? { pieces, stop_sequence } : { pieces: tokensOf(text.slice(0, end)), stop_sequence };
}

/** Keeps the first `tokens_max` pieces. The name of a call is not counted, so that a cut call keeps it. */
function cutAtLength(blocks: Block[], tokens_max: number): { blocks: Block[]; cut: boolean } {
  const kept: Block[] = [];
  let left = tokens_max;
  for (const block of blocks) {
    if (left === 0) return { blocks: kept, cut: true };
    if (block.pieces.length > left)
      return { blocks: [...kept, { ...block, pieces: block.pieces.slice(0, left) }], cut: true };
    kept.push(block);
    left -= block.pieces.length;
  }
  return { blocks: kept, cut: false };
}

function reasoningTokens(blocks: Block[]): number {
  return blocks.reduce((sum, block) => (block.kind === 'reasoning' ? sum + block.pieces.length : sum), 0);
}

/** The answer to a prompt. The same prompt always gets the same answer. */
export function answerTo(prompt: Prompt, behaviour: Behaviour, faults: Faults): Answer {
  const blocks: Block[] = [];
  let stop_sequence: string | null = null;
  if (behaviour === 'refuse') {
    blocks.push({ kind: 'refusal', pieces: tokensOf("I'm sorry, but I can't help with that.") });
  } else {
    if (prompt.reasoning) {
      const images = prompt.images === 0 ? '' : ` They sent ${prompt.images} images.`;
      blocks.push({
        kind: 'reasoning',
        pieces: tokensOf(`The user says ${countTokens(prompt.user_text)} tokens.${images} Answer them.`),
      });
    }
    const tools = chosenTools(prompt, behaviour);
    if (tools.length === 0) {
      const cut = cutAtStop(textPieces(prompt, behaviour, faults), prompt.stop);
      stop_sequence = cut.stop_sequence;
      if (cut.pieces.length > 0) blocks.push({ kind: 'text', pieces: cut.pieces });
    }
    if (tools.length > 0 && behaviour === 'research') blocks.push({ kind: 'text', pieces: tokensOf('Let me look.') });
    for (const [ordinal, tool] of tools.entries()) {
      const args = JSON.stringify(schemaSample({ type: 'object', ...tool.parameters }, tools.length));
      blocks.push({ kind: 'call', id: callId(prompt, ordinal), name: tool.name, pieces: tokensOf(args) });
    }
  }
  const { blocks: kept, cut } = cutAtLength(blocks, prompt.tokens_max);
  const reasoning_tokens = reasoningTokens(kept);
  const output_tokens = kept.reduce((sum, block) => sum + block.pieces.length, 0);
  let finish: Answer['finish'] = 'stop';
  if (cut) finish = 'length';
  else if (behaviour === 'refuse') finish = 'refusal';
  else if (kept.some((block) => block.kind === 'call')) finish = 'calls';
  else if (stop_sequence !== null) finish = 'stop_sequence';
  return { blocks: kept, finish, stop_sequence: cut ? null : stop_sequence, output_tokens, reasoning_tokens };
}
