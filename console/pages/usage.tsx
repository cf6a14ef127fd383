import type { AnalyticsMeta } from '../api.gen.ts';
import { call } from '../api.ts';
import { route, setQuery } from '../state.ts';
import { Check, Heading, Show, useLoaded } from '../ui.tsx';
import { capital, day, RANGES, readState, shortId } from '../usage-data.ts';
import { UsageResult } from '../usage-result.tsx';

function Select({
  label,
  name,
  value,
  options,
}: {
  label: string;
  name: string;
  value: string;
  options: readonly (readonly [string, string])[];
}) {
  return (
    <label class="labelled">
      <span>{label}</span>
      <select value={value} onChange={(event) => setQuery({ [name]: event.currentTarget.value })}>
        {options.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

function Day({ label, name, value }: { label: string; name: string; value: string }) {
  return (
    <label class="labelled">
      <span>{label}</span>
      <input type="date" required value={value} onChange={(event) => setQuery({ [name]: event.currentTarget.value })} />
    </label>
  );
}

function Usage({ meta }: { meta: AnalyticsMeta }) {
  const state = readState(route.value.query, meta);
  const dimensions = meta.dimensions.map(({ name, display_label }) => [name, display_label] as const);
  return (
    <>
      <div class="filters">
        <Select
          label="Metric"
          name="metric"
          value={state.metric?.name ?? ''}
          options={meta.metrics.map(({ name, display_label }) => [name, display_label])}
        />
        <Select label="By" name="by" value={state.first} options={[['none', 'Nothing'], ...dimensions]} />
        <Select label="And by" name="by2" value={state.second} options={[['', 'Nothing'], ...dimensions]} />
        <Select label="Range" name="range" value={state.range} options={Object.entries(RANGES)} />
        {state.range === 'custom' && (
          <>
            <Day label="From (UTC)" name="from" value={day(state.times.start)} />
            <Day label="To, included" name="to" value={day(state.times.end - 1)} />
          </>
        )}
        <Select
          label="Step"
          name="step"
          value={state.granularity}
          options={state.steps.map((name) => [name, capital(name)])}
        />
        <Check checked={state.compares} onChange={(isChecked) => setQuery({ compare: isChecked ? 'on' : '' })}>
          Compare with the period before
        </Check>
      </div>
      {state.filters.length > 0 && (
        <p class="actions">
          {state.filters.map(({ name, value }) => (
            <button type="button" class="small" key={name} onClick={() => setQuery({ [name]: undefined })}>
              {meta.dimensions.find((one) => one.name === name)?.display_label}: <bdi>{shortId(value)}</bdi> ✕
              <span class="hidden"> (remove this filter)</span>
            </button>
          ))}
        </p>
      )}
      <UsageResult state={state} meta={meta} />
    </>
  );
}

export default function Page() {
  const meta = useLoaded((signal) => call('getAnalyticsMeta', {}, signal));
  return (
    <>
      <Heading title="Usage" />
      <Show of={meta}>{({ data }) => <Usage meta={data} />}</Show>
    </>
  );
}
