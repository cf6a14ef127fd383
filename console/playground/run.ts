/** Sends the requests of the playground; each model answers by itself, so that one failure leaves the others as they are. */
import { signal } from '@preact/signals';
import { ChatError, emptyAnswer, streamAnswer, type Usage } from '../chat.ts';
import { messageOf } from '../ui.tsx';
import {
  type Answer,
  bodyFor,
  type Cell,
  hasSchema,
  images,
  prompt,
  type Step,
  secret,
  type Turn,
  turns,
} from './draft.ts';

let lastTurn = 0;
/** The id of a new turn. */
export const nextTurnId = (): number => {
  lastTurn += 1;
  return lastTurn;
};

/** The cost of an answer at the organization's own account at the provider. */
export const ownCostOf = ({ cost_details }: Usage): number => cost_details?.upstream_inference_cost ?? 0;
/** The cost of an answer, billed by the gateway or by the provider. */
const costOf = (usage: Usage): number => (usage.cost ?? 0) + ownCostOf(usage);
/** The cost of the answers of turns, as far as they state it. */
export const costOfTurns = (of: readonly Turn[]): number =>
  of
    .flatMap(({ cells }) => cells.flatMap(({ steps }) => steps.value))
    .reduce((sum, { answer }) => sum + (answer.value.usage === undefined ? 0 : costOf(answer.value.usage)), 0);

const stepsOf = (of: readonly Turn[]): Step[] => of.flatMap(({ cells }) => cells.flatMap(({ steps }) => steps.value));
export const isRunning = (): boolean => stepsOf(turns.value).some(({ answer }) => answer.value.state === 'running');

async function read({ answer, abort }: Step, body: object): Promise<void> {
  const begun = performance.now();
  const change = (fields: Partial<Answer>) => {
    answer.value = { ...answer.value, ...fields };
  };
  try {
    await streamAnswer(
      secret.value,
      body,
      (parts) => change(parts.firstAt === undefined ? parts : { ...parts, firstMs: parts.firstAt - begun }),
      abort.signal,
    );
    change({ state: 'done', ms: performance.now() - begun });
  } catch (error) {
    const { code, requestId, id } = error instanceof ChatError ? error : {};
    if (abort.signal.aborted) change({ state: 'stopped' });
    else {
      const failure = {
        message: messageOf(error),
        ...(code === undefined ? {} : { code }),
        ...(requestId === undefined ? {} : { requestId }),
        ...(id === undefined ? {} : { id }),
      };
      change({ state: 'failed', failure });
    }
  }
}

/** Requests the next answer of a model: the first of a turn, or the one after the results of its tools. */
function next(turn: Turn, cell: Cell): void {
  const until = turns.value.slice(0, turns.value.indexOf(turn) + 1);
  const body = bodyFor(cell.model, until);
  const step: Step = {
    answer: signal<Answer>({ ...emptyAnswer(), state: 'running', isJson: hasSchema.value }),
    abort: new AbortController(),
    results: signal<string[]>([]),
    areSent: signal(false),
  };
  cell.steps.value = [...cell.steps.value, step];
  void read(step, body);
}

function begin(text: string, files: Turn['images'], models: readonly string[]): void {
  const cells = models.map((model): Cell => ({ model, steps: signal<Step[]>([]) }));
  const turn: Turn = { id: nextTurnId(), text, images: files, cells };
  turns.value = [...turns.value, turn];
  for (const cell of cells) next(turn, cell);
}

/** Sends the prompt to the models, as the next turn of their conversations. */
export function send(models: readonly string[]): void {
  begin(prompt.value, images.value, models);
  prompt.value = '';
  images.value = [];
}

function stopSteps(steps: readonly Step[]): void {
  for (const { answer, abort } of steps) if (answer.peek().state === 'running') abort.abort();
}
export const stop = (): void => stopSteps(stepsOf(turns.value));

/** Sends a turn with another text; the turns after it are removed. */
export function resend(turn: Turn, text: string, models: readonly string[]): void {
  const at = turns.value.indexOf(turn);
  stopSteps(stepsOf(turns.value.slice(at)));
  turns.value = turns.value.slice(0, at);
  begin(text, turn.images, models);
}

/** Removes a turn with its answers. */
export function remove(turn: Turn): void {
  stopSteps(stepsOf([turn]));
  turns.value = turns.value.filter((one) => one !== turn);
}

export function clear(): void {
  stop();
  turns.value = [];
}

/** Requests the last answer of one model once more. */
export function tryAgain(turn: Turn, cell: Cell): void {
  cell.steps.value = cell.steps.value.slice(0, -1);
  next(turn, cell);
}

/** Sends the results of tools that an answer called. */
export function sendResults(turn: Turn, cell: Cell, step: Step): void {
  step.areSent.value = true;
  next(turn, cell);
}
