import type { DialectEndpoint, Report } from '../dialect.ts';
import { type AddReport, reportOnce } from '../shared/reports.ts';
import { fitToolName } from '../shared/tool-ids.ts';

/** What the steps of one encoding share. */
export interface Encoding {
  endpoint: DialectEndpoint;
  report: Report[];
  /** Thinking of former turns may go back: the model thinks, and is to think in this turn. */
  takesThinking: boolean;
  /** The name of a tool as this wire takes it. */
  toolName(name: string): string;
  /** Name as sent -> name as the client knows it, for the tools that had to be renamed. */
  renamed: Record<string, string>;
  tell: AddReport;
}

/** Makes the shared part of one encoding. */
export function createEncoding(endpoint: DialectEndpoint, takesThinking: boolean): Encoding {
  const report: Report[] = [];
  const renamed: Record<string, string> = {};
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
    tell: (...told) => reportOnce(report, ...told),
  };
}
