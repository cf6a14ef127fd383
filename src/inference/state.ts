/**
 * The state of a call while it is answered: `CallState`, with the order in which it tries endpoints, and one `Attempt` for each request
 * to an endpoint.
 */
import type { EndpointPrices } from '../catalog/model.ts';
import type { Hold } from '../ledger/leases/hold.ts';
import type { Charge } from '../ledger/prices/charge.ts';
import type { AttemptRecord, FeeRecord, OpenRecord, RoutingRecord } from '../ledger/records.ts';
import type { Report } from '../providers/dialect.ts';
import type { Candidate, Plan } from '../routing/plan.ts';
import type { ChatCompletion, TokenClasses } from '../schemas/inner.ts';
import type { JsonObject } from '../schemas/json.ts';
import type { FailedAttempt } from './attempt/failure.ts';
import type { Call } from './call.ts';
import type { Grant, Prepared } from './money/admission.ts';
import type { Meter } from './money/meter.ts';
import type { RateLimitReservation } from './plan/rate-limit-reservation.ts';
import type { ModelSource, Requested } from './plan/requested-models.ts';
import type { SessionAffinity } from './plan/session-affinity.ts';
import type { CitedSource } from './tools/server-tools.ts';

/** Follows a call for the pipeline while the engine answers it. */
export interface AnswerWatch {
  /** Whether a filter withholds the rest of the answer: nothing more needs to be read. */
  readonly isWithheld: boolean;
  /** Checks a whole answer before it is settled, so that the record has the result. */
  review(completion: ChatCompletion): Promise<void> | undefined;
}

/** The model and provider that answered, as the client sees them. */
export interface Served {
  model: string;
  provider: string;
}

/** A body that an attempt sent upstream, shown to clients that debug. */
export interface SentBody {
  served: Served;
  body: JsonObject;
}

/** Reads the usage and the end of one attempt's answer. */
export type Account = Pick<Meter, 'usage' | 'finish_reason' | 'native_finish_reason' | 'service_tier' | 'upstream_id'> &
  Partial<Pick<Meter, 'calledTools' | 'reported'>>;

/** What the gateway's own tools did for an answer. */
export interface ToolUse {
  web_search_requests: number;
  tool_calls_requested: number;
  tool_calls_executed: number;
}

/** One request to one endpoint, from its preparation to its charge. */
export class Attempt<P extends Prepared = Prepared, M extends Account = Account> {
  /** The call with this attempt's own request, which differs from the client's for a tool step or a continuation. */
  readonly call: Call;
  readonly candidate: Candidate;
  /** The turn of the model that it belongs to, from 1. */
  readonly step: number;
  /** It continues the text of an attempt that broke off. */
  readonly continues: boolean;
  /** It runs beside another attempt. */
  isHedge = false;
  /** The request as it is sent. Set when the attempt is admitted. */
  prepared!: P;
  /** Its terms; undefined if no budget counts it. */
  grant: Grant | undefined = undefined;
  /** Nano-USD that were held for it, if another attempt was admitted after it. Undefined if the hold has its amount. */
  grantedNano: number | undefined = undefined;
  /** Output tokens that it is charged for if its end stays unknown and nothing was held for it. */
  presumedOutput = 0;
  /** Its number in the journal and at the provider, from 1. */
  number = 0;
  /** The record of the call as it was made durable before the send. */
  opening: OpenRecord | undefined = undefined;
  isSent = false;
  /** Monotonic time of the send. */
  sentMs = 0;
  /** Milliseconds between its beginning and its send. */
  waitedMs = 0;
  /** Monotonic time at which its answer began. */
  firstTokenMs: number | undefined = undefined;
  /** Follows its answer. Set at the send. */
  meter!: M;
  /** Tokens that a failed attempt is billed for. Null if there are none. */
  used: TokenClasses | null = null;
  /** Changes that were made to the request for this endpoint. */
  report: Report[] = [];
  /** Its entry in the generation; undefined until its end, or that it answers, is noted. */
  record: AttemptRecord | undefined = undefined;
  /** Its end is unknown and the provider may go on and bill it: closing the connection does not stop that. */
  mayGoOn = false;
  /** It made its part of the answer and is charged for it. Set before it is priced. */
  isCharged = false;
  /** The usage and price of its part of the answer. Set when it is priced. */
  usage: TokenClasses | null = null;
  charge: Charge | undefined = undefined;

  constructor(call: Call, candidate: Candidate, { step, parts }: Pick<CallState, 'step' | 'parts'>) {
    this.call = call;
    this.candidate = candidate;
    this.step = step;
    this.continues = parts.length > 0 && parts.at(-1)?.record?.failure != null;
  }
}

const NONE: readonly never[] = [];

/** The state of one call, from its plan to its settlement. A class: every call has one, and a spread of all these fields is slow. */
export class CallState {
  /** The client's call. */
  readonly call: Call;
  /** The models and prices that the call keeps. */
  readonly catalog: ModelSource;
  /** Where the call may go. */
  readonly plan: Plan;
  /** How the models of the request were found: their names, and the variants that these request. */
  readonly named: Requested;
  /** Changes that were made to the request for all endpoints. */
  readonly report: readonly Report[];
  /** Keeps the conversation at the endpoint that answered. Created at the first call: few calls need it. */
  readonly home: (() => SessionAffinity) | undefined;
  /** The call's count against rate limits. Undefined before it is counted, and if no limit concerns it. */
  reservation: RateLimitReservation | undefined = undefined;
  /** Undefined if nothing follows the call. */
  watch: AnswerWatch | undefined = undefined;
  /** The money that is held for the call, in every budget that counts it. */
  hold: Hold;
  /** Attempts whose end, or that they answer, is noted, in the order of their sends. */
  attempts: readonly Attempt[] = NONE;
  /** Attempts that made a part of the answer and are charged. */
  parts: readonly Attempt[] = NONE;
  /** The endpoints in the order of their turns in this step: the plan's, until an event changes it. */
  order: readonly Candidate[] = [];
  /** The index of the endpoint that has its turn. */
  turn = 0;
  /** How many endpoints had a turn in this step at first: later ones were put off. */
  plannedTurns = 0;
  /** The attempt that is prepared or under way, or the last one. */
  current: Attempt | undefined = undefined;
  /** The attempt whose answer is waited for: the current one, or its hedge. */
  awaited: Attempt | undefined = undefined;
  /** The attempt that was sent last. */
  lastSent: Attempt | undefined = undefined;
  /** The newest durable record of the call; undefined before the first. */
  record: OpenRecord | undefined = undefined;
  /** Paid work beside the attempts. */
  readonly fees: FeeRecord[] = [];
  /** Pages that the answer may cite. */
  readonly sources: CitedSource[] = [];
  /** Failures that the client's error reports. */
  failed: readonly FailedAttempt[] = NONE;
  /** The turn of the model that is under way, from 1: an answer with tools of the gateway may take several. */
  step = 1;
  /** Calls of the gateway's tools; undefined if it has none in this call. */
  toolCalls: { requested: number; executed: number } | undefined = undefined;
  /** Bodies that were sent and not shown yet. */
  readonly bodies: SentBody[] = [];
  /** Set when the call is settled: its routing as the record keeps it, and what it used in all. */
  routing: RoutingRecord | undefined = undefined;
  usage: TokenClasses | null = null;

  constructor({
    call,
    catalog,
    plan,
    named,
    report,
    home,
  }: Pick<CallState, 'call' | 'catalog' | 'plan' | 'named' | 'report' | 'home'>) {
    this.call = call;
    this.catalog = catalog;
    this.plan = plan;
    this.named = named;
    this.report = report;
    this.home = home;
    this.hold = { id: call.generation_id, lines: [], granted_nano: 0 };
  }

  /** Prices of models that a provider runs inside a call. Rare, so a scan suffices. */
  pricesOf(provider: string, upstreamModel: string): EndpointPrices | undefined {
    for (const { endpoints } of this.catalog.models()) {
      for (const endpoint of endpoints) {
        if (endpoint.provider === provider && endpoint.upstream_model === upstreamModel) return endpoint;
      }
    }
    return undefined;
  }

  /** Puts an endpoint that is busy behind the others; false if it is tried now. An order of the client's own is kept. */
  putOff(): boolean {
    const wasPutOff = this.turn >= this.plannedTurns;
    const isLast = this.turn + 1 === this.order.length;
    const isOrdered = (this.call.request.provider?.order?.length ?? 0) > 0;
    if (wasPutOff || isLast || isOrdered) return false;
    this.order = [...this.order, this.order[this.turn]!];
    return true;
  }

  /** Waits for another attempt instead. Its endpoint gets no turn of its own. */
  waitFor(attempt: Attempt): void {
    this.awaited = attempt;
    this.order = this.order.filter((one, nth) => nth <= this.turn || one !== attempt.candidate);
  }

  /**
   * Drops the endpoints of the model that refused the request itself, as the public service documents it: the client may have named
   * other models. Other choices of a router for the same name are dropped too: a request that one provider rejects is not sent to
   * all of them. False if no endpoint is left.
   */
  leaveModel(): boolean {
    const refused = this.order[this.turn]!.model;
    const { names = [] } = this.named;
    const alike = names.filter(({ models }) => models.includes(refused));
    const others = names.filter((name) => !alike.includes(name));
    const isOther = ({ model }: Candidate) =>
      others.some(({ models }) => models.includes(model)) || !alike.some(({ models }) => models.includes(model));
    const left = this.order.filter((one, nth) => nth <= this.turn || (one.model !== refused && isOther(one)));
    if (left.length === this.turn + 1) return false;
    this.order = left;
    return true;
  }
}
