import { limits } from '../../limits.ts';
import type { UpstreamError } from '../../providers/dialect.ts';
import { type Candidate, servedId } from '../../routing/candidate.ts';
import type { Sample } from '../../routing/endpoint-bucket.ts';
import type { EndpointStatistics } from '../../routing/endpoint-statistics.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import { outputTokens } from '../../schemas/usage.ts';
import type { ToolCallCount } from '../money/meter.ts';

/** When an answer came, in monotonic milliseconds, and what it was. */
export interface AnswerFacts {
  is_streamed: boolean;
  sent_ms: number;
  first_token_ms: number | undefined;
  end_ms: number;
  usage: TokenClasses | null;
  tool_calls: ToolCallCount | undefined;
  /** Whether it came to its end; one that the client left is neither a success nor an error. */
  is_completed: boolean;
  /** It came to its end, and the end says that it is none. */
  is_error: boolean;
}

/** What calls tell of the endpoints that they went to. */
export interface Traffic {
  /** An attempt that its endpoint is to blame for. */
  failed(candidate: Candidate, error: UpstreamError): void;
  /** An answer that is over and did not break off. */
  answered(candidate: Candidate, facts: AnswerFacts): void;
}

/** When an attempt's own first token came. Before its send it was that of another, whose text it goes on with. */
function ownFirstToken({ sent_ms, first_token_ms }: AnswerFacts): number | undefined {
  return first_token_ms !== undefined && first_token_ms >= sent_ms ? first_token_ms : undefined;
}

/**
 * Tokens a second: those after the first, from it to the end. What came in one piece tells nothing of that; then all of them,
 * over the whole time.
 */
function tokensPerSecond(facts: AnswerFacts): number | undefined {
  const { usage, is_streamed, sent_ms, end_ms } = facts;
  const tokens = usage === null ? 0 : outputTokens(usage);
  if (tokens < 2) return undefined;
  const flow_ms = end_ms - (ownFirstToken(facts) ?? end_ms);
  if (is_streamed && flow_ms >= limits.throughput_ms_min) return ((tokens - 1) / flow_ms) * 1000;
  const whole_ms = end_ms - sent_ms;
  return whole_ms > 0 ? (tokens / whole_ms) * 1000 : undefined;
}

/** What a finished answer tells. */
export function sampleOf(facts: AnswerFacts): Sample {
  const { is_streamed, is_completed, is_error, sent_ms, tool_calls } = facts;
  const is_good = is_completed && !is_error;
  const first_token_ms = ownFirstToken(facts);
  return {
    result: is_good ? 'success' : is_completed ? 'error' : undefined,
    is_streamed,
    latency_ms: first_token_ms === undefined ? undefined : first_token_ms - sent_ms,
    tokens_per_second: is_good ? tokensPerSecond(facts) : undefined,
    tool_calls: is_good ? tool_calls?.count : undefined,
    tool_calls_valid: is_good ? tool_calls?.valid : undefined,
  };
}

/** How a failure that is the endpoint's counts; undefined: not at all, as a refusal of where the call comes from. */
function resultOf({ failure, status }: UpstreamError): Sample['result'] {
  if (failure === 'rate_limited') return 'rate_limited';
  return failure === 'conflict' || status === 403 ? undefined : 'error';
}

/**
 * Counts what happens at the gateway's own accounts. What an organization's own account does stays out of it: its limits and
 * its speed are its own, and what it is used for is nobody else's business.
 */
export function createTraffic(
  statistics: Pick<EndpointStatistics, 'observe'>,
  { now_ms }: { now_ms(): number },
): Traffic {
  return {
    failed(candidate, error) {
      const result = resultOf(error);
      const is_counted = candidate.own === undefined && result !== undefined;
      if (is_counted) statistics.observe(servedId(candidate), { result }, now_ms());
    },
    answered(candidate, facts) {
      if (candidate.own === undefined) statistics.observe(servedId(candidate), sampleOf(facts), now_ms());
    },
  };
}
