import type { GatewayError } from '../../errors.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { Attempt, CallState } from '../state.ts';

/** The order in which a call tries its endpoints: the plan's, until an event changes it. One for each step of a call. */
export class TryOrder {
  /** The endpoints in the order of their turns. */
  list: readonly Candidate[];
  /** The index of the endpoint that has its turn. */
  at = 0;
  /** The attempt whose answer is waited for: the candidate's own, or its hedge. */
  awaited!: Attempt;
  /** The last refusal before a send after which others could still be tried. */
  refused: GatewayError | undefined = undefined;
  readonly #state: CallState;
  readonly #planned: number;

  constructor(state: CallState, candidates: readonly Candidate[]) {
    this.#state = state;
    this.#planned = candidates.length;
    this.list = candidates;
  }

  /** The endpoint that has its turn. */
  get candidate(): Candidate {
    return this.list[this.at]!;
  }

  /** The endpoints after this one. */
  later(): readonly Candidate[] {
    return this.list.slice(this.at + 1);
  }

  /** Moves this endpoint to the end; false if it is tried now. An order of the client's own is kept. */
  putOff(): boolean {
    const wasPutOff = this.at >= this.#planned;
    const isLast = this.at + 1 === this.list.length;
    const isOrdered = (this.#state.call.request.provider?.order?.length ?? 0) > 0;
    if (wasPutOff || isLast || isOrdered) return false;
    this.list = [...this.list, this.candidate];
    return true;
  }

  /** Waits for another attempt instead. Its endpoint gets no turn of its own. */
  waitFor(attempt: Attempt): void {
    this.awaited = attempt;
    this.list = this.list.filter((one, nth) => nth <= this.at || one !== attempt.candidate);
  }

  /**
   * Drops the endpoints of the model that refused the request itself, as the public service documents it: the client may have named
   * other models. Other choices of a router for the same name are dropped too: a request that one provider rejects is not sent to
   * all of them. False if no endpoint is left.
   */
  leaveModel(): boolean {
    const refused = this.candidate.model;
    const { names = [] } = this.#state;
    const alike = names.filter(({ models }) => models.includes(refused));
    const others = names.filter((name) => !alike.includes(name));
    const isOther = ({ model }: Candidate) =>
      others.some(({ models }) => models.includes(model)) || !alike.some(({ models }) => models.includes(model));
    const left = this.list.filter((one, nth) => nth <= this.at || (one.model !== refused && isOther(one)));
    if (left.length === this.at + 1) return false;
    this.list = left;
    return true;
  }
}
