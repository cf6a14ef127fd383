import type { GatewayError } from '../../errors.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { CallState } from '../call-state.ts';

/**
 * Whom a call asks, one after another: the plan's order, as far as nothing happens that changes it. A class and not closures:
 * there is one for every step.
 */
export class TryOrder {
  /** Whose turn it is, once `next` has given the first. */
  candidate!: Candidate;
  /** Whose answer is waited for: theirs, or that of a hedge. */
  awaited!: Candidate;
  /** The last refusal of an attempt before its send that left others to try. */
  refused: GatewayError | undefined = undefined;
  readonly #session: CallState;
  readonly #planned: number;
  #order: readonly Candidate[];
  #at = -1;

  constructor(session: CallState, candidates: readonly Candidate[]) {
    this.#session = session;
    this.#planned = candidates.length;
    this.#order = candidates;
  }

  /** Gives the next one its turn; false: all had theirs. */
  next(): boolean {
    this.#at += 1;
    const candidate = this.#order[this.#at];
    if (candidate === undefined) return false;
    this.candidate = candidate;
    this.awaited = candidate;
    return true;
  }

  /** Whose turns come after this one. */
  later(): readonly Candidate[] {
    return this.#order.slice(this.#at + 1);
  }

  /** Lets all others go before the one whose turn it is; false: it is tried now. An order that the client gave stays. */
  putOff(): boolean {
    const was_put_off = this.#at >= this.#planned;
    const is_last = this.#at + 1 === this.#order.length;
    const is_ordered = (this.#session.call.request.provider?.order?.length ?? 0) > 0;
    if (was_put_off || is_last || is_ordered) return false;
    this.#order = [...this.#order, this.candidate];
    return true;
  }

  /** Another's answer is waited for now: it has its turn beside this one, and no other. */
  waitFor(other: Candidate): void {
    this.awaited = other;
    this.#order = this.#order.filter((one, nth) => nth <= this.#at || one !== other);
  }

  /**
   * Leaves those to try who are not of the model that refused the request itself: that is one model's word, and the client named
   * others, as the public service documents it. Not a router's other choices: what one provider will not have is not shown to all of them unasked.
   * False: nobody is left.
   */
  leaveModel(): boolean {
    const refused = this.candidate.model;
    const { names = [] } = this.#session;
    const alike = names.filter(({ models }) => models.includes(refused));
    const others = names.filter((name) => !alike.includes(name));
    const isOther = ({ model }: Candidate) =>
      others.some(({ models }) => models.includes(model)) || !alike.some(({ models }) => models.includes(model));
    const left = this.#order.filter((one, nth) => nth <= this.#at || (one.model !== refused && isOther(one)));
    if (left.length === this.#at + 1) return false;
    this.#order = left;
    return true;
  }
}
