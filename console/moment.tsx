import { route, setQuery, zone } from './state.ts';
import { Field } from './ui.tsx';

/** A field of time holds UTC or local time, as the person chose. */
const isoOf = (text: string) => {
  const date = new Date(zone.value === 'UTC' ? `${text}Z` : text);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
};
const fieldOf = (iso: string) => {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return '';
  const shifted = zone.value === 'UTC' ? date : new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 16);
};

/** A filter by time in the address of the page. */
export function Moment({ name, label }: { name: 'from' | 'to'; label: string }) {
  const value = route.value.query.get(name) ?? '';
  return (
    <Field label={`${label} (${zone.value === 'UTC' ? 'UTC' : 'local'})`}>
      <input
        type="datetime-local"
        value={fieldOf(value)}
        onChange={(event) => {
          const iso = isoOf(event.currentTarget.value);
          setQuery({ [name]: iso });
        }}
      />
    </Field>
  );
}
