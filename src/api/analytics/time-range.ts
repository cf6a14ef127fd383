import { invalidField } from '../../errors.ts';
import { DAY_MS, windowStart } from '../../schemas/budget.ts';
import type { Granularity } from './metrics.ts';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const DEFAULT_DAYS = 7;
/** The longest range, and that of queries by hour. */
const RANGE_DAYS_MAX = 366;
const HOURS_RANGE_DAYS_MAX = 31;
/** Minutes are summed over the generations themselves. */
const MINUTES_RANGE_HOURS_MAX = 24;

const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?Z$/;

/** A range in milliseconds since 1970, without its end. */
export interface Range {
  from: number;
  to: number;
}

function momentOf(field: string, text: string): number {
  const moment = DATE_TIME.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(moment))
    throw invalidField(field, 'must be a date and time with seconds in UTC such as 2026-01-31T00:00:00Z');
  return moment;
}

/** The range of a query, in whole hours, or in whole minutes for `minute`. Throws a 400 for one that is not allowed. */
export function rangeOf(
  requested: { start: string; end: string } | undefined,
  { granularity, now }: { granularity: Granularity | undefined; now: number },
): Range & { isRounded: boolean } {
  const step = granularity === 'minute' ? MINUTE_MS : HOUR_MS;
  const isDefault = requested === undefined;
  const span = granularity === 'minute' ? HOUR_MS : DEFAULT_DAYS * DAY_MS;
  const start = isDefault ? now - span : momentOf('time_range.start', requested.start);
  // The end is not included: this very millisecond is.
  const end = isDefault ? now + 1 : momentOf('time_range.end', requested.end);
  if (end <= start) throw invalidField('time_range.end', 'must be after time_range.start');
  const from = Math.floor(start / step) * step;
  const to = Math.ceil(end / step) * step;
  if (granularity === 'minute') {
    if (to - from > MINUTES_RANGE_HOURS_MAX * HOUR_MS) {
      throw invalidField('time_range', `must be at most ${MINUTES_RANGE_HOURS_MAX} hours for the granularity minute`);
    }
  } else if (granularity === 'hour' && to - from > (HOURS_RANGE_DAYS_MAX + 1) * DAY_MS) {
    throw invalidField('time_range', `must be at most ${HOURS_RANGE_DAYS_MAX} days for the granularity hour`);
  }
  if (to - from > (RANGE_DAYS_MAX + 1) * DAY_MS) {
    throw invalidField('time_range', `must be at most ${RANGE_DAYS_MAX} days`);
  }
  return { from, to, isRounded: !isDefault && (from !== start || to !== end) };
}

/** The beginnings of the groups of a range; undefined for groups of one hour or day. */
export function startsOf(granularity: 'week' | 'month', { from, to }: Range): number[] {
  const starts: number[] = [];
  for (let moment = from; moment < to; ) {
    const start = Date.parse(windowStart(granularity === 'week' ? 'weekly' : 'monthly', moment));
    starts.push(start);
    const next = new Date(start);
    moment = granularity === 'week' ? start + 7 * DAY_MS : Date.UTC(next.getUTCFullYear(), next.getUTCMonth() + 1, 1);
  }
  return starts;
}

/** The name of the time in a row, and its text. */
export function timeField(granularity: Granularity): { name: string; textOf(moment: number): string } {
  const isFine = granularity === 'minute' || granularity === 'hour';
  return {
    name: `${isFine ? 'created_at' : 'date'}__${granularity}`,
    textOf: (moment) => {
      const text = new Date(moment).toISOString();
      return isFine ? `${text.slice(0, 'YYYY-MM-DDTHH:MM:SS'.length)}Z` : text.slice(0, 'YYYY-MM-DD'.length);
    },
  };
}
