import { setImmediate as nextTurn } from 'node:timers/promises';
import { GatewayError } from '../errors.ts';
import type { Analyzer, Entity } from '../guardrails/analyzer.ts';
import { type FilterSet, filterSetOf } from '../guardrails/filter-set.ts';
import type { Finding } from '../guardrails/finding.ts';
import { createNumbering, type Numbering } from '../guardrails/redaction.ts';
import { requestTexts, saidTexts } from '../guardrails/request-texts.ts';
import { isReversible, type Screened, type Screener, type Subject, screen } from '../guardrails/screen.ts';
import { filterName, filterStages, refusalTold } from '../guardrails/verdict.ts';
import { METERED } from '../http/metered.ts';
import { withSources } from '../http/sources.ts';
import { limits } from '../limits.ts';
import type { ChatRequest } from '../schemas/inner.ts';
import type { JsonObject } from '../schemas/json.ts';
import type { Stage } from '../schemas/routing-metadata.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Prepared } from './admission.ts';
import type { Inference } from './answer.ts';
import type { Call, ScreeningOf } from './call.ts';
import { analyzeInTime } from './dry-run.ts';
import { createRestored } from './restored.ts';
import type { StreamEvent } from './stream-answer.ts';
import type { Task } from './task.ts';

/** What happens where a filter cannot be applied. */
export interface ScreeningRules {
  on_failure: 'block' | 'allow';
  /** For what finds names and addresses, for all texts of a request. */
  timeout_ms: number;
  /** Countries whose telephone numbers need no calling code to be found. */
  phone_regions?: readonly string[];
}

export interface ScreeningOptions {
  analyzer: Analyzer;
  /** Asked once a request, so that a reload takes effect at once. */
  rules(): ScreeningRules;
  metrics: Pick<Metrics, 'contentFiltered'>;
  log: { warn(facts: object, message: string): void };
}

/** A call whose texts may go on. */
interface Passed {
  call: Call;
  /** What stands for what in it, by placeholder. */
  values: ReadonlyMap<string, string>;
}

/** How a client calls the field of its request in which something was found. */
export function clientField({ request, fieldName }: Pick<Call, 'request' | 'fieldName'>, field: string): string {
  if (request.ext?.client.hasPrompt) return field.replace(/^messages\[0\]\.content/, 'prompt');
  if (fieldName === undefined) return field;
  const [entry] = /^(?:messages\[\d+\](?:\.content\[\d+\])?|tools\[\d+\]|[a-z_]+)/.exec(field) ?? [field];
  return fieldName(entry);
}

/** Why an answer cannot be had where filters cannot be applied: another time they may be. */
function unscreened(cause: unknown): GatewayError {
  return new GatewayError(503, 'The content filters of this key could not be applied in time; try again soon', {
    metadata: { reason: 'content_filter_unavailable' },
    headers: { 'retry-after': '1' },
    cause,
  });
}

/**
 * Holds what callers send against their filters, before anything else is done with it: what is to be redacted is not in the
 * request that goes on, and one that must not go on is refused. Calls whose callers have no filters pass through.
 */
export function createScreened(inner: Inference, options: ScreeningOptions): Inference {
  const { analyzer, metrics, log } = options;

  /** The texts that no analyzer looked at, where the operator would rather have that than no answer. */
  async function analyzed(call: Call, texts: readonly string[]): Promise<Entity[][]> {
    const { on_failure, timeout_ms } = options.rules();
    try {
      return await analyzeInTime(analyzer, texts, timeout_ms);
    } catch (error) {
      log.warn(
        { err: error, generation_id: call.generation_id, on_failure },
        'names and addresses could not be looked for',
      );
      call.stages.push({
        type: 'guardrail',
        name: 'content-filter',
        summary:
          on_failure === 'block'
            ? 'Failed: the request was not let through'
            : 'Failed: names and addresses were not looked for',
        data: { action: on_failure === 'block' ? 'blocked' : 'skipped', detected: false, engines: ['nlp'] },
      });
      if (on_failure === 'block') throw unscreened(error);
      return [];
    }
  }

  function screenerOf(call: Call, set: FilterSet, numbering: Numbering): Screener {
    const analyze = set.analyzed.length === 0 ? undefined : (texts: readonly string[]) => analyzed(call, texts);
    return { set, guardrails: call.principal.guardrails, numbering, pause: nextTurn, analyze };
  }

  /** Tells what was found, in the call and in the metrics. */
  function tell(call: Call, set: FilterSet, { found, refusal }: Screened<unknown>, is_spare: boolean): void {
    if (found.length === 0) return;
    const findings: Finding[] = found.flatMap((one) => one.findings);
    const stages = filterStages(set, findings, refusal?.filter);
    call.stages.push(...(is_spare ? stages.map(leftOut) : stages));
    const counts = new Map<number, number>();
    for (const { filter } of findings) counts.set(filter, (counts.get(filter) ?? 0) + 1);
    for (const [index, count] of counts) {
      const filter = set.filters[index]!;
      // What is left out is kept from the model, and the call goes on.
      const action = filter !== refusal?.filter ? filter.action : is_spare ? 'redact' : 'block';
      metrics.contentFiltered(filterName(filter), action, count);
    }
  }

  async function screened<T>(
    call: Call,
    subject: Subject<T>,
    screener: Screener,
    is_spare = false,
  ): Promise<Screened<T>> {
    const told = await screen(subject, screener);
    tell(call, screener.set, told, is_spare);
    return told;
  }

  async function refuse(
    call: Call,
    { refusal }: Pick<Screened<unknown>, 'refusal'>,
    wanted?: Parameters<Inference['routingOf']>[1],
  ): Promise<void> {
    if (refusal === undefined) return;
    const { message, metadata } = refusalTold({ ...refusal, field: clientField(call, refusal.field) });
    const gateway_metadata = await inner.routingOf(call, wanted);
    throw new GatewayError(403, message, { metadata, ...(gateway_metadata === undefined ? {} : { gateway_metadata }) });
  }

  /** Texts that come to the call later are held against the same filters, and numbered on. */
  function later(call: Call, screener: Screener): Call['screening'] {
    return {
      async texts(texts, { is_spare } = CLIENTS) {
        const visited: Subject<string[]> = (visit) => texts.map((text) => visit(text, { field: 'file', kind: 'text' }));
        const told = await screened(call, visited, screener, is_spare);
        await refuse(call, told);
        return told.subject;
      },
      async messages(messages, { is_spare } = CLIENTS) {
        const given: ChatRequest = { messages: [...messages] };
        const rules = { keeps_signatures: keepsSignatures(screener) };
        const subject: Subject<ChatRequest> = (visit) => requestTexts(given, { ...rules, visit });
        const told = await screened(call, subject, screener, is_spare);
        await refuse(call, told);
        return told.subject.messages;
      },
    };
  }

  async function pass(call: Call, set: FilterSet): Promise<Passed> {
    const numbering = createNumbering();
    const screener = screenerOf(call, set, numbering);
    const keeps_signatures = keepsSignatures(screener);
    const subject: Subject<ChatRequest> = (visit) => requestTexts(call.request, { visit, keeps_signatures });
    const told = await screened(call, subject, screener);
    const passed = { ...call, request: told.subject, screening: later(call, screener) };
    await refuse({ ...call, request: told.subject }, told);
    if (told.subject !== call.request) await takeRoom(call, told);
    return { call: passed, values: numbering.values };
  }

  async function passTask<P extends Prepared, A>(
    call: Call,
    task: Task<P, A>,
    set: FilterSet,
  ): Promise<{ call: Call; task: Task<P, A> }> {
    const words = task.words();
    const { unreadable } = words;
    if (unreadable !== undefined && set.filters.some(({ action }) => action !== 'flag')) refuseUnread(call, unreadable);
    const subject: Subject<JsonObject> = (visit) => saidTexts(words.said, visit);
    const told = await screened(call, subject, screenerOf(call, set, createNumbering()));
    if (told.subject === words.said) {
      await refuse(call, told, task);
      return { call, task };
    }
    await takeRoom(call, told);
    const retold = words.retold(told.subject);
    const passed = { ...call, request: retold.request };
    await refuse(passed, told, retold.task);
    return { call: passed, task: retold.task };
  }

  /** What filters cannot read does not go on, unless the operator would rather have that. */
  function refuseUnread(call: Call, field: string): void {
    if (options.rules().on_failure === 'allow') return;
    call.stages.push({
      type: 'guardrail',
      name: 'content-filter',
      summary: 'Blocked: tokens are no text',
      data: { action: 'blocked', detected: false },
    });
    throw new GatewayError(
      403,
      `Request blocked by content filter: ${field} must be text, since filters cannot read tokens`,
      {
        metadata: { field, reason: 'unreadable' },
      },
    );
  }

  async function* screenedStream(call: Call, set: FilterSet): AsyncGenerator<StreamEvent, void, undefined> {
    const passed = await pass(call, set);
    yield* restoring(passed, set).stream(passed.call);
  }

  /** What comes later may be redacted as well: whether anything is to be put back is known at the end alone. */
  function restoring({ call, values }: Passed, set: FilterSet): Pick<Inference, 'complete' | 'stream'> {
    return set.filters.some(isReversible(call.principal.guardrails)) ? createRestored(inner, values) : inner;
  }

  const setOf = ({ principal: { guardrails } }: Call) =>
    guardrails.length === 0 ? undefined : filterSetOf(guardrails, options.rules().phone_regions);

  return {
    [METERED]: true,
    complete(call) {
      const set = setOf(call);
      if (set === undefined) return inner.complete(call);
      return pass(call, set).then((passed) => restoring(passed, set).complete(passed.call));
    },
    stream(call) {
      const set = setOf(call);
      return set === undefined ? inner.stream(call) : withSources(screenedStream(call, set));
    },
    explain(call) {
      const set = setOf(call);
      return set === undefined ? inner.explain(call) : pass(call, set).then((passed) => inner.explain(passed.call));
    },
    countTokens(call) {
      const set = setOf(call);
      if (set === undefined) return inner.countTokens(call);
      return pass(call, set).then((passed) => inner.countTokens(passed.call));
    },
    routingOf: inner.routingOf,
    run(call, task) {
      const set = setOf(call);
      if (set === undefined) return inner.run(call, task);
      return passTask(call, task, set).then((passed) => inner.run(passed.call, passed.task));
    },
  };
}

/** What a client sent is no spare: the call ends with it. */
const CLIENTS: ScreeningOf = { is_spare: false };

/** What would have ended the call, had the client sent it. */
function leftOut(stage: Stage): Stage {
  if (stage.data?.['action'] !== 'blocked') return stage;
  const summary = stage.summary?.replace(/^Blocked/, 'Left out');
  return {
    ...stage,
    ...(summary === undefined ? {} : { summary }),
    data: { ...stage.data, action: 'left_out' },
  };
}

/** Whether all that is redacted comes back: a thought is then again what its signature was made for. */
function keepsSignatures({ set, guardrails }: Screener): boolean {
  return set.filters.filter(({ action }) => action === 'redact').every(isReversible(guardrails));
}

/** Counts the texts that stand beside those that the client sent. */
async function takeRoom({ room }: Call, { found }: Pick<Screened<unknown>, 'found'>): Promise<void> {
  const chars = found.reduce((sum, { text }) => sum + text.length, 0);
  if (chars > limits.counted_bytes_min) await room?.take(chars * limits.body_copies);
}
