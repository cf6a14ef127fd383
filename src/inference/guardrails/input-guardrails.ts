import { GatewayError } from '../../errors.ts';
import type { Analyzer, Entity } from '../../guardrails/entities/analyzer.ts';
import { countFindings } from '../../guardrails/finding.ts';
import { type FilterSet, filterSetOf } from '../../guardrails/policy/filter-set.ts';
import { filterName, filterStages, refusalError } from '../../guardrails/policy/verdict.ts';
import { createNumbering, type Numbering } from '../../guardrails/redaction.ts';
import { bodyTexts, requestTexts } from '../../guardrails/requests/request-texts.ts';
import { isReversible, type Screened, type Screener, type Subject, screen } from '../../guardrails/requests/screen.ts';
import { limits } from '../../limits.ts';
import { nextTurn } from '../../next-turn.ts';
import type { ChatRequest, Message } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { Stage } from '../../schemas/routing-metadata.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { Call, Screening, ScreeningOf } from '../call.ts';
import type { Prepared } from '../money/admission.ts';
import type { Task } from '../operations/task.ts';
import type { CallContext, CallHooks, Middleware, TaskCall } from '../pipeline.ts';
import type { Wanted } from '../plan/planner.ts';
import type { AnswerTransform } from '../transform.ts';
import { analyzeInTime } from './dry-run.ts';
import { Unredact } from './unredact.ts';

/** How filters are applied, and what happens if that fails. */
export interface ScreeningRules {
  on_failure: 'block' | 'allow';
  /** The time limit of the search for names and addresses in all texts of a request. */
  timeout_ms: number;
  /** Countries whose telephone numbers are recognized without their calling code. */
  phone_regions?: readonly string[];
}

export interface InputGuardrailsOptions {
  analyzer: Analyzer;
  /** Read for each call: a reload takes effect at once. */
  rules(): ScreeningRules;
  metrics: Pick<Metrics, 'contentFiltered'>;
  log: { warn(facts: object, message: string): void };
}

/** The client's name of the field that has a finding. */
export function clientField({ request, fieldName }: Pick<Call, 'request' | 'fieldName'>, field: string): string {
  if (request.ext?.client.hasPrompt) return field.replace(/^messages\[0\]\.content/, 'prompt');
  if (fieldName === undefined) return field;
  const [entry] = /^(?:messages\[\d+\](?:\.content\[\d+\])?|tools\[\d+\]|[a-z_]+)/.exec(field) ?? [field];
  return fieldName(entry);
}

/** The refusal of a request whose filters could not be applied. */
function filterUnavailable(cause: unknown): GatewayError {
  return new GatewayError(503, 'The content filters of this key could not be applied in time; try again soon', {
    metadata: { reason: 'content_filter_unavailable' },
    headers: { 'retry-after': '1' },
    cause,
  });
}

/** The parts of filtering that are the same for all calls. */
function createScreening({ analyzer, metrics, log, rules }: InputGuardrailsOptions) {
  /** The names and addresses in texts; none if the analyzer fails and the operator allows that. */
  async function analyzed(call: Call, texts: readonly string[]): Promise<Entity[][]> {
    const { on_failure, timeout_ms } = rules();
    try {
      return await analyzeInTime(analyzer, texts, timeout_ms);
    } catch (error) {
      log.warn(
        { err: error, generation_id: call.generation_id, on_failure },
        'names and addresses could not be searched',
      );
      call.stages.push({
        type: 'guardrail',
        name: 'content-filter',
        summary:
          on_failure === 'block' ? 'Failed: the request was refused' : 'Failed: names and addresses were not searched',
        data: { action: on_failure === 'block' ? 'blocked' : 'skipped', detected: false, engines: ['nlp'] },
      });
      if (on_failure === 'block') throw filterUnavailable(error);
      return [];
    }
  }

  function screenerOf(call: Call, set: FilterSet, numbering: Numbering): Screener {
    const analyze = set.analyzed.length === 0 ? undefined : (texts: readonly string[]) => analyzed(call, texts);
    return { set, guardrails: call.principal.guardrails, numbering, pause: nextTurn, analyze };
  }

  /** Adds the findings to the stages of the call and to the metrics. */
  function report(call: Call, set: FilterSet, { matches, refusal }: Screened<unknown>, isOptional: boolean): void {
    if (matches.length === 0) return;
    const findings = countFindings(matches);
    const stages = filterStages(set, findings, refusal?.filter);
    call.stages.push(...(isOptional ? stages.map(leftOut) : stages));
    const counts = new Map<number, number>();
    for (const { filter, count } of findings) counts.set(filter, (counts.get(filter) ?? 0) + count);
    for (const [index, count] of counts) {
      const filter = set.filters[index]!;
      // Optional content is left out, and the call continues.
      const action = filter !== refusal?.filter ? filter.action : isOptional ? 'redact' : 'block';
      metrics.contentFiltered(filterName(filter), action, count);
    }
  }

  async function screened<T>(
    call: Call,
    subject: Subject<T>,
    screener: Screener,
    isOptional = false,
  ): Promise<Screened<T>> {
    const result = await screen(subject, screener);
    report(call, screener.set, result, isOptional);
    return result;
  }

  return { screenerOf, screened };
}

/** Applies the callers' filters to requests before anything else: redacts matches, and refuses blocked requests. */
export function inputGuardrails(options: InputGuardrailsOptions): Middleware {
  const screening = createScreening(options);
  return {
    name: 'input guardrails',
    of: 'guardrails',
    begin(call, purpose, context) {
      if (purpose === 'routing') return undefined;
      const set = filterSetOf(call.principal.guardrails, options.rules().phone_regions);
      return set === undefined ? undefined : new InputGuard(set, options, { ...screening, ...context });
    },
  };
}

/** The input guardrails of one call, which also filter what joins it later. Placeholders continue the numbering. */
class InputGuard implements CallHooks, Screening {
  readonly #set: FilterSet;
  readonly #options: InputGuardrailsOptions;
  readonly #parts: ReturnType<typeof createScreening> & CallContext;
  readonly #numbering = createNumbering();
  #received!: Call;
  /** The filtered call. */
  #call: Call | undefined = undefined;

  constructor(
    set: FilterSet,
    options: InputGuardrailsOptions,
    parts: ReturnType<typeof createScreening> & CallContext,
  ) {
    this.#set = set;
    this.#options = options;
    this.#parts = parts;
  }

  async onRequest(call: Call): Promise<Call> {
    this.#received = call;
    const screener = this.#screenerOf(call);
    const result = await this.#parts.screened(call, textsOf(call.request, screener), screener);
    const passed = { ...call, request: result.subject, screening: this };
    this.#call = passed;
    await this.#refuse({ ...call, request: result.subject }, result);
    if (result.subject !== call.request) await takeRoom(call, result);
    return passed;
  }

  async onTask<P extends Prepared, A>(call: Call, task: Task<P, A>): Promise<TaskCall<P, A>> {
    const { fields, unreadable, withFields } = task.input();
    const isChanging = this.#set.filters.some(({ action }) => action !== 'flag');
    if (unreadable !== undefined && isChanging) this.#refuseUnreadable(call, unreadable);
    const subject: Subject<JsonObject> = (visit) => bodyTexts(fields, visit);
    const result = await this.#parts.screened(call, subject, this.#screenerOf(call));
    if (result.subject === fields) {
      await this.#refuse(call, result, task);
      return { call, task };
    }
    await takeRoom(call, result);
    const { request, task: screened } = withFields(result.subject);
    const passed = { ...call, request };
    await this.#refuse(passed, result, screened);
    return { call: passed, task: screened };
  }

  /** Texts that join the call later may be redacted too, so it is known only at the end whether anything is restored. */
  createTransform(choices: number): AnswerTransform | undefined {
    const call = this.#call;
    if (call === undefined || !this.#set.filters.some(isReversible(call.principal.guardrails))) return undefined;
    return new Unredact(call.request, this.#numbering.values, choices);
  }

  #screenerOf(call: Call): Screener {
    return this.#parts.screenerOf(call, this.#set, this.#numbering);
  }

  async #refuse(call: Call, { refusal }: Pick<Screened<unknown>, 'refusal'>, wanted?: Wanted): Promise<void> {
    if (refusal === undefined) return;
    const { message, metadata } = refusalError({ ...refusal, field: clientField(call, refusal.field) });
    const gatewayMetadata = await this.#parts.routingOf(call, wanted);
    throw new GatewayError(403, message, {
      metadata,
      ...(gatewayMetadata === undefined ? {} : { gateway_metadata: gatewayMetadata }),
    });
  }

  async texts(texts: readonly string[], { isOptional } = CLIENTS): Promise<string[]> {
    const subject: Subject<string[]> = (visit) => texts.map((text) => visit(text, { field: 'file', kind: 'text' }));
    return this.#later(subject, this.#screenerOf(this.#received), isOptional);
  }

  async messages(messages: readonly Message[], { isOptional } = CLIENTS): Promise<Message[]> {
    const screener = this.#screenerOf(this.#received);
    return (await this.#later(textsOf({ messages: [...messages] }, screener), screener, isOptional)).messages;
  }

  async #later<T>(subject: Subject<T>, screener: Screener, isOptional: boolean): Promise<T> {
    const result = await this.#parts.screened(this.#received, subject, screener, isOptional);
    await this.#refuse(this.#received, result);
    return result.subject;
  }

  /** Refuses a field that filters cannot read, unless the operator allows that. */
  #refuseUnreadable(call: Call, field: string): void {
    if (this.#options.rules().on_failure === 'allow') return;
    call.stages.push({
      type: 'guardrail',
      name: 'content-filter',
      summary: 'Blocked: tokens are not text',
      data: { action: 'blocked', detected: false },
    });
    const message = `Request blocked by content filter: ${field} must be text, because filters cannot read tokens`;
    throw new GatewayError(403, message, { metadata: { field, reason: 'unreadable' } });
  }
}

/** Content of the client is not optional: a blocked text ends the call. */
const CLIENTS: ScreeningOf = { isOptional: false };

/** The stage of optional content that was blocked and left out. */
function leftOut(stage: Stage): Stage {
  if (stage.data?.['action'] !== 'blocked') return stage;
  const summary = stage.summary?.replace(/^Blocked/, 'Left out');
  return {
    ...stage,
    ...(summary === undefined ? {} : { summary }),
    data: { ...stage.data, action: 'left_out' },
  };
}

/** The texts of a request. */
function textsOf(request: ChatRequest, screener: Screener): Subject<ChatRequest> {
  const rules = { keeps_signatures: keepsSignatures(screener) };
  return (visit) => requestTexts(request, { ...rules, visit });
}

/** Whether all redactions are reversible: then signed reasoning is restored unchanged. */
function keepsSignatures({ set, guardrails }: Screener): boolean {
  return set.filters.filter(({ action }) => action === 'redact').every(isReversible(guardrails));
}

/** Counts the memory of filtered texts, which exist beside the originals. */
async function takeRoom({ room }: Call, { matches }: Pick<Screened<unknown>, 'matches'>): Promise<void> {
  const chars = matches.reduce((sum, { text }) => sum + text.length, 0);
  if (chars > limits.counted_bytes_min) await room?.take(chars * limits.body_copies);
}
