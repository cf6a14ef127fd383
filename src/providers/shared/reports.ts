import { limits } from '../../limits.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import type { Report } from '../dialect.ts';
import { spokenToGateway } from './gateway-fields.ts';

/** Tells of a parameter that could not be carried as sent. */
export type TellReport = (kind: Report['kind'], field: string, reason: string) => void;

/** Why a parameter is dropped that a wire does not have. */
export const NO_FIELD = 'this provider does not support this parameter';

/** Notes in a list what it is told, up to a bound. */
export function reportInto(report: Report[]): TellReport {
  return (kind, field, reason) => {
    if (report.length < limits.reports_max) report.push({ kind, field, reason });
  };
}

/** Notes it in the list up to the same bound, each field once of a kind. */
export function reportOnce(report: Report[], ...[kind, field, reason]: Parameters<TellReport>): void {
  if (report.length >= limits.reports_max) return;
  if (!report.some((told) => told.field === field && told.kind === kind)) report.push({ kind, field, reason });
}

/** Tells of all that a request asks of the upstream and a dialect does not read: its wire has no field for it. */
export function reportUnread(request: ChatRequest, read: ReadonlySet<string>, tell: TellReport): void {
  for (const field in request) {
    if (request[field] == null || read.has(field) || spokenToGateway.has(field)) continue;
    tell('dropped', field, NO_FIELD);
  }
}
