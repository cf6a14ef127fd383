import type { DialectEndpoint, Report } from '../dialect.ts';
import { type AddReport, reportOnce } from '../shared/reports.ts';
import { fitToolName } from '../shared/tool-ids.ts';

/** The state that the steps of one encoding share. */
export interface Encoding {
  endpoint: DialectEndpoint;
  report: Report[];
  /** Whether thinking of former turns may be sent back: the model thinks, and thinking is on for this turn. */
  takesThinking: boolean;
  /** The name of a tool in the form that this wire accepts. */
  toolName(name: string): string;
  /** Name as sent -> name as the client knows it, for the tools that had to be renamed. */
  renamed: Record<string, string>;
  addReport: AddReport;
}

/** The state of a new encoding. */
export function createEncoding(endpoint: DialectEndpoint, takesThinking: boolean): Encoding {
  const report: Report[] = [];
  const renamed: Record<string, string> = Object.create(null);
  return {
    endpoint,
    report,
    takesThinking,
    renamed,
    toolName(name) {
      const sent = fitToolName(name);
      if (sent !== name) renamed[sent] = name;
      return sent;
    },
    addReport: (...entry) => reportOnce(report, ...entry),
  };
}
