import type { UpstreamError } from '../../providers/dialect.ts';
import { type Candidate, servedId } from '../../routing/candidate.ts';
import type { Sample } from '../../routing/endpoint-bucket.ts';
import type { EndpointStatistics } from '../../routing/endpoint-statistics.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import { outputTokens } from '../../schemas/usage.ts';
import type { ToolCallCount } from '../money/called-tools.ts';

/** An answer that ends within this time after its first token arrived in one piece. */
const THROUGHPUT_MS_MIN = 20;

/** One answer, times in monotonic milliseconds. */
export interface AnswerFacts {
  is_streamed: boolean;
  sent_ms: number;
  first_token_ms: number | undefined;
  end_ms: number;
  usage: TokenClasses | null;
  tool_calls: ToolCallCount | undefined;
  /** False if the client left: then it is neither a success nor an error. */
  is_completed: boolean;
  /** The answer was completed, and its finish reason is an error. */
  is_error: boolean;
}

/** Counts the results of attempts for the statistics of endpoints. */
export interface Traffic {
  /** An attempt failed by its endpoint's fault. */
  failed(candidate: Candidate, error: UpstreamError): void;
  /** An answer has ended without breaking off. */
  answered(candidate: Candidate, facts: AnswerFacts): void;
}

/** How a failure by the endpoint's fault is counted; undefined if it is not, such as a refusal of the caller's location. */
function resultOf({ failure, status }: UpstreamError): Sample['result'] {
  if (failure === 'rate_limited') return 'rate_limited';
  return failure === 'conflict' || status === 403 ? undefined : 'error';
}

/**
 * Counts attempts at the gateway's own accounts. Attempts at an organization's own account are not counted: its limits and speed are
 * its own, and its use is private.
 */
export function createTraffic(
  statistics: Pick<EndpointStatistics, 'observe'>,
  { nowMs }: { nowMs(): number },
): Traffic {
  return {
    failed(candidate, error) {
      const result = resultOf(error);
      const isCounted = candidate.own === undefined && result !== undefined;
      if (isCounted) statistics.observe(servedId(candidate), { result }, nowMs());
    },
    answered(candidate, facts) {
      if (candidate.own !== undefined) return;
      const { is_streamed, is_completed, is_error, usage, sent_ms, end_ms, tool_calls } = facts;
      const isGood = is_completed && !is_error;
      // A first token before the send is that of an earlier attempt, whose text this one continues.
      const firstTokenMs =
        facts.first_token_ms !== undefined && facts.first_token_ms >= sent_ms ? facts.first_token_ms : undefined;
      const tokens = usage === null ? 0 : outputTokens(usage);
      let tokensPerSecond: number | undefined;
      if (isGood && tokens >= 2) {
        // From the first token to the end; over the whole time if the answer arrived in one piece.
        const flowMs = end_ms - (firstTokenMs ?? end_ms);
        if (is_streamed && flowMs >= THROUGHPUT_MS_MIN) tokensPerSecond = ((tokens - 1) / flowMs) * 1000;
        else if (end_ms > sent_ms) tokensPerSecond = (tokens / (end_ms - sent_ms)) * 1000;
      }
      const sample: Sample = {
        result: isGood ? 'success' : is_completed ? 'error' : undefined,
        is_streamed,
        latency_ms: firstTokenMs === undefined ? undefined : firstTokenMs - sent_ms,
        tokens_per_second: tokensPerSecond,
        tool_calls: isGood ? tool_calls?.count : undefined,
        tool_calls_valid: isGood ? tool_calls?.valid : undefined,
      };
      statistics.observe(servedId(candidate), sample, nowMs());
    },
  };
}
