import { invalidField } from '../../errors.ts';
import type { ResponsesRequestBody } from '../../schemas/responses.ts';

const ISO_DATE = /^(\d{4})-(\d{2})-(\d{2})(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/;

/** Checks the rules between the fields of `x_search_filter`. Throws a `GatewayError` 400 that names them. */
export function checkXSearch(filter: ResponsesRequestBody['x_search_filter']): void {
  if (filter == null) return;
  const { allowed_x_handles, excluded_x_handles, from_date, to_date } = filter;
  if (allowed_x_handles?.length && excluded_x_handles?.length) {
    throw invalidField('x_search_filter', 'may have allowed_x_handles or excluded_x_handles, not both');
  }
  const fromMs = timeOf(from_date, 'x_search_filter.from_date');
  const toMs = timeOf(to_date, 'x_search_filter.to_date');
  if (fromMs !== undefined && toMs !== undefined && fromMs > toMs) {
    throw invalidField('x_search_filter.from_date', 'must not be after to_date');
  }
}

/** The time of a calendar day. Throws for a day that does not exist, such as February 30. */
function timeOf(date: string | null | undefined, field: string): number | undefined {
  if (date == null) return undefined;
  const [, year, month, day] = ISO_DATE.exec(date) ?? [];
  const ofDay = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  // `Date` moves a day that does not exist into the next month.
  const isDay = ofDay.getUTCMonth() === Number(month) - 1;
  const time = Date.parse(date);
  if (year === undefined || !isDay || Number.isNaN(time)) {
    throw invalidField(field, 'must be an ISO 8601 date such as 2026-01-31');
  }
  return time;
}
