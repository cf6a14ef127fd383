import type { ChatRequest } from '../../schemas/inner.ts';
import type { DialectEndpoint, EncodeOptions, Report } from '../dialect.ts';
import type { Quirks } from '../quirks.ts';
import { type AddReport, reportOnce } from '../shared/reports.ts';

/** What the steps of one encoding share. */
export interface Encoding {
  request: ChatRequest;
  endpoint: DialectEndpoint;
  quirks: Quirks;
  options: EncodeOptions;
  report: Report[];
  /** Original name -> name as sent, for tools whose name the wire does not take; undefined: it takes all. */
  renamed: Map<string, string> | undefined;
}

/** Tells once that a field could not be carried as sent, up to a bound. */
export function tell(encoding: Encoding, ...told: Parameters<AddReport>): void {
  reportOnce(encoding.report, ...told);
}
