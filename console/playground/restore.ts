/** Makes the conversation of a kept call the one of the playground. */
import { signal } from '@preact/signals';
import { emptyAnswer, type ToolCall } from '../chat.ts';
import type { Draft } from '../replay.ts';
import {
  type Answer,
  effort,
  images,
  prompt,
  type Step,
  schema,
  system,
  type Turn,
  toolChoice,
  tools,
  turns,
} from './draft.ts';
import { clear, nextTurnId } from './run.ts';

type Message = Draft['messages'][number];

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

/** The text of a message; other parts, such as images, are not kept. */
function textOf({ content }: Message): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .flatMap((part: unknown) => (isObject(part) && typeof part['text'] === 'string' ? [part['text']] : []))
    .join('\n');
}

function callsOf({ tool_calls: calls }: Message): ToolCall[] {
  if (!Array.isArray(calls)) return [];
  return calls.flatMap((one: unknown) => {
    const made = isObject(one) ? one['function'] : undefined;
    if (!isObject(one) || !isObject(made)) return [];
    return [{ id: String(one['id']), name: String(made['name']), args: String(made['arguments']) }];
  });
}

/** An answer of the conversation, with the results of the tools that it called. */
function stepOf(message: Message, after: readonly Message[]): Step {
  const calls = callsOf(message);
  const resultOf = ({ id }: ToolCall) => {
    const result = after.find(({ role, tool_call_id: of }) => role === 'tool' && of === id);
    return result === undefined ? '' : textOf(result);
  };
  const answer: Answer = { ...emptyAnswer(), text: textOf(message), calls, state: 'done', isJson: false };
  return {
    answer: signal(answer),
    abort: new AbortController(),
    results: signal(calls.map(resultOf)),
    areSent: signal(calls.length > 0),
  };
}

const indented = (value: unknown): string => (isObject(value) ? JSON.stringify(value, undefined, 2) : '');

/**
 * Fills the playground: earlier turns are shown with their answers, the last message of the user is the next prompt.
 * What follows that message is left out: the next answer takes its place.
 */
export function restore({ model, messages, fields }: Draft): void {
  clear();
  const last = messages.findLastIndex(({ role }) => role === 'user');
  const restored: Turn[] = [];
  for (const [index, message] of messages.slice(0, Math.max(0, last)).entries()) {
    const turn = restored.at(-1);
    if (message.role === 'user') {
      const cells = [{ model, steps: signal<Step[]>([]) }];
      restored.push({ id: nextTurnId(), text: textOf(message), images: [], cells });
    } else if (message.role === 'assistant' && turn?.cells[0] !== undefined) {
      const { steps } = turn.cells[0];
      steps.value = [...steps.value, stepOf(message, messages.slice(index + 1, last))];
    }
  }
  turns.value = restored;
  const found = messages[last];
  prompt.value = found === undefined ? '' : textOf(found);
  system.value = messages
    .filter(({ role }) => role === 'system' || role === 'developer')
    .map(textOf)
    .join('\n\n');
  images.value = [];
  tools.value = indented(fields['tools']);
  toolChoice.value = ['required', 'none'].find((choice) => choice === fields['tool_choice']) ?? '';
  const format = fields['response_format'];
  schema.value = isObject(format) ? indented(format['json_schema']) : '';
  effort.value = typeof fields['reasoning_effort'] === 'string' ? fields['reasoning_effort'] : '';
}
