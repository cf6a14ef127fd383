/** The cost of the next request, as the gateway plans it without sending it. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { RouteExplanation } from '../api.gen.ts';
import { explain } from '../chat.ts';
import { count } from '../format.ts';
import { Money, messageOf, Table } from '../ui.tsx';
import { bodyFor, hasPrompt, schemaFault, secret, toolsFault, withPrompt } from './draft.ts';
import { megabytes } from './images.ts';
import { isRunning } from './run.ts';

/** The estimate waits until a person pauses. */
const PAUSE_MS = 700;
/** Larger requests are only estimated on demand: they are uploaded for it. */
const ESTIMATED_CHARS_MAX = 2_000_000;

interface Estimate {
  model: string;
  promptTokens?: number;
  answerTokens?: number;
  expected?: number | null;
  highest?: number | null;
  refusal?: string;
}

function estimateOf(model: string, of: RouteExplanation): Estimate {
  const reached = of.endpoints.planned.filter(({ is_reached }) => is_reached);
  const refused = of.error ?? reached.find(({ refusal }) => refusal !== null)?.refusal ?? null;
  if (refused !== null) return { model, refusal: `${refused.code}: ${refused.message}` };
  const costs = reached.map(({ worst_case_cost }) => worst_case_cost);
  return {
    model,
    promptTokens: of.expected_prompt_tokens,
    answerTokens: of.expected_completion_tokens,
    expected: reached[0]?.expected_cost ?? null,
    highest: costs.some((cost) => cost === null) ? null : Math.max(...costs.map((cost) => cost ?? 0)),
  };
}

const sumOf = (costs: readonly (number | null | undefined)[]): number | null =>
  costs.some((cost) => cost === null || cost === undefined)
    ? null
    : costs.reduce<number>((sum, cost) => sum + (cost ?? 0), 0);

const Cost = ({ of }: { of: number | null | undefined }) =>
  of === null || of === undefined ? <span class="dim">not known</span> : <Money usd={of} />;

export function Estimates({ models }: { models: readonly string[] }) {
  const shown = useSignal<{ of: Estimate[]; key: string }>({ of: [], key: '' });
  const demanded = useSignal('');
  const isReady = secret.value.trim() !== '' && models.length > 0 && hasPrompt() && !isRunning();
  const isWrong = toolsFault.value !== undefined || schemaFault.value !== undefined;
  const bodies = isReady && !isWrong ? models.map((model) => bodyFor(model, withPrompt())) : [];
  // Images are the bulk of a request: their lengths and ends tell them apart.
  let imageChars = 0;
  const short = (_: string, value: unknown) => {
    if (typeof value !== 'string' || !value.startsWith('data:image/')) return value;
    imageChars += value.length;
    return `${value.length} ${value.slice(-60)}`;
  };
  const key = bodies.length === 0 ? '' : `${secret.value} ${JSON.stringify(bodies, short)}`;
  const size = bodies.length === 0 ? 0 : (key.length + imageChars) / bodies.length;
  const isLarge = size > ESTIMATED_CHARS_MAX && demanded.value !== key;
  useEffect(() => {
    if (key === '' || isLarge) return undefined;
    const abort = new AbortController();
    const timer = setTimeout(
      async () => {
        const of = await Promise.all(
          bodies.map(async (body): Promise<Estimate> => {
            try {
              return estimateOf(body.model, await explain(secret.value, body, abort.signal));
            } catch (error) {
              return { model: body.model, refusal: messageOf(error) };
            }
          }),
        );
        if (!abort.signal.aborted) shown.value = { of, key };
      },
      demanded.peek() === key ? 0 : PAUSE_MS,
    );
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [key, isLarge]);
  if (!isReady) {
    return secret.value.trim() === '' && models.length > 0 && hasPrompt() ? (
      <p class="dim">With a key, the cost is estimated here before you send.</p>
    ) : null;
  }
  if (isWrong) return null;
  if (isLarge) {
    return (
      <p class="dim">
        The request has {megabytes(size)}.{' '}
        <button
          type="button"
          class="link"
          onClick={() => {
            demanded.value = key;
          }}
        >
          Upload it to estimate the cost
        </button>
      </p>
    );
  }
  const { of } = shown.value;
  if (of.length === 0) return <p class="dim">Estimating the cost …</p>;
  const able = of.filter(({ refusal }) => refusal === undefined);
  const tokens = [...new Set(able.map(({ answerTokens }) => count(answerTokens ?? 0)))];
  return (
    <section class={`estimate${shown.value.key === key ? '' : ' former'}`} aria-label="Cost before sending">
      <Table
        class="cards"
        caption="Cost before sending"
        head={['Cost before sending', '>Prompt tokens', '>Expected', '>At most']}
      >
        {of.map(({ model, promptTokens, expected, highest, refusal }) => (
          <tr key={model}>
            <th scope="row">
              <bdi>{model}</bdi>
            </th>
            {refusal === undefined ? (
              <>
                <td class="right" data-label="Prompt tokens">
                  <span class="number">{count(promptTokens ?? 0)}</span>
                </td>
                <td class="right" data-label="Expected">
                  <Cost of={expected} />
                </td>
                <td class="right" data-label="At most">
                  <Cost of={highest} />
                </td>
              </>
            ) : (
              <td colSpan={3} class="refused">
                Would be refused. <bdi>{refusal}</bdi>
              </td>
            )}
          </tr>
        ))}
        {able.length > 1 && (
          <tr class="total">
            <th scope="row">Together</th>
            <td />
            <td class="right" data-label="Expected">
              <Cost of={sumOf(able.map(({ expected }) => expected))} />
            </td>
            <td class="right" data-label="At most">
              <Cost of={sumOf(able.map(({ highest }) => highest))} />
            </td>
          </tr>
        )}
      </Table>
      {able.length > 0 && (
        <small>
          An estimate by the gateway; nothing is sent to a provider. Expected: the gateway’s count of the prompt and an
          answer of {tokens.join(' or ')} tokens. At most: one attempt with the longest answer, at the most expensive
          endpoint that may be used.
        </small>
      )}
    </section>
  );
}
