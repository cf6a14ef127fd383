import type { ChatRequest } from '../../schemas/inner.ts';
import type { DialectEndpoint, EncodeOptions, Report } from '../dialect.ts';
import type { Quirks } from '../quirks.ts';
import { type AddReport, reportOnce } from '../shared/reports.ts';

/** The state that the steps of one encoding share. */
export interface Encoding {
  request: ChatRequest;
  endpoint: DialectEndpoint;
  quirks: Quirks;
  options: EncodeOptions;
  report: Report[];
  /** Original name -> name as sent, for tools whose name the wire does not accept; undefined if there are none. */
  renamed: Map<string, string> | undefined;
}

/** Reports once that a field could not be sent as the client wrote it, up to a bound. */
export function addReport(encoding: Encoding, ...entry: Parameters<AddReport>): void {
  reportOnce(encoding.report, ...entry);
}
