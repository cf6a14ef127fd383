import { limits } from '../../limits.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import type { Report } from '../dialect.ts';
import { gatewayOnlyFields } from './gateway-fields.ts';

/** Reports a parameter that could not be sent as the client wrote it. */
export type AddReport = (kind: Report['kind'], field: string, reason: string) => void;

/** The reason for dropping a parameter that a wire does not have. */
export const NO_FIELD = 'this provider does not support this parameter';

/** A function that adds reports to a list, up to `reports_max`. */
export function reportInto(report: Report[]): AddReport {
  return (kind, field, reason) => {
    if (report.length < limits.reports_max) report.push({ kind, field, reason });
  };
}

/** Adds a report to the list, up to the same bound, unless it has one of this field and kind. */
export function reportOnce(report: Report[], ...[kind, field, reason]: Parameters<AddReport>): void {
  if (report.length >= limits.reports_max) return;
  if (!report.some((entry) => entry.field === field && entry.kind === kind)) report.push({ kind, field, reason });
}

/** Reports all parameters of a request for the upstream that a dialect does not read because its wire has no field for them. */
export function reportUnread(request: ChatRequest, read: ReadonlySet<string>, addReport: AddReport): void {
  for (const field in request) {
    if (request[field] == null || read.has(field) || gatewayOnlyFields.has(field)) continue;
    addReport('dropped', field, NO_FIELD);
  }
}
