import type { FailingEndpoint } from './api.gen.ts';
import { call } from './api.ts';
import { Condition, failedCalls, failedText, failingText } from './endpoint-state.tsx';
import { count } from './format.ts';
import { Show, useLoaded } from './ui.tsx';
import { Uptime } from './uptime.tsx';

/** The measured endpoints of these models, with their uptime. */
export function Endpoints({ models }: { models: string[] }) {
  const endpoints = useLoaded(
    async (signal) =>
      (
        await Promise.all(
          models.map(async (id) => {
            const slash = id.indexOf('/');
            const path = { author: id.slice(0, slash), slug: id.slice(slash + 1) };
            const { data } = await call('listModelEndpoints', { path }, signal);
            return data.endpoints.map((endpoint) => ({ model: id, endpoint }));
          }),
        )
      ).flat(),
    models.join(),
  );
  return (
    <Show of={endpoints}>
      {(rows) => {
        const measured = rows.filter(({ endpoint }) => endpoint.uptime_last_1d !== null);
        if (measured.length === 0)
          return <p class="dim">No endpoint has enough calls in the last day to be measured.</p>;
        return (
          <ul class="rows">
            {measured.map(({ model, endpoint }) => (
              <li key={`${model} ${endpoint.tag}`}>
                <span>
                  <a href={`models?${new URLSearchParams({ id: model })}`} data-page>
                    <bdi>{model}</bdi>
                  </a>{' '}
                  <span class="dim">
                    at <bdi>{endpoint.provider_name}</bdi>
                  </span>
                </span>
                <Uptime of={endpoint} />
              </li>
            ))}
          </ul>
        );
      }}
    </Show>
  );
}

/** Endpoints that fail now or failed in the last day. */
export function Failing({ of, total }: { of: readonly FailingEndpoint[]; total: number }) {
  if (of.length === 0) return null;
  return (
    <section class="card">
      <h2>
        Failing endpoints <span class="dim">{count(total)}</span>
      </h2>
      <ul class="rows">
        {of.map((endpoint) => (
          <li key={`${endpoint.model_id} ${endpoint.tag}`}>
            <span>
              <Condition of={endpoint.condition} />{' '}
              <a href={`models?${new URLSearchParams({ id: endpoint.model_id })}`} data-page>
                <bdi>{endpoint.model_id}</bdi>
              </a>{' '}
              <span class="dim">
                at <bdi>{endpoint.provider_name}</bdi> ({endpoint.tag})
              </span>
              {failingText(endpoint) !== '' && (
                <>
                  <br />
                  <small>{failingText(endpoint)}</small>
                </>
              )}
            </span>
            <span>
              <small>
                30 min: {failedText(endpoint.last_30m)}
                <br />
                24 h: {failedText(endpoint.last_1d)}
              </small>
              <br />
              <a href={failedCalls(endpoint)} data-page>
                Failed calls<span class="hidden"> of {endpoint.endpoint_id}</span>
              </a>
            </span>
          </li>
        ))}
      </ul>
      {total > of.length && <p class="dim">And {count(total - of.length)} more: GET /api/v1/endpoints/failing.</p>}
    </section>
  );
}
