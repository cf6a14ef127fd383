/** Who is told of calls of workspaces that say so (`is_observability_broadcast_enabled`). */
export interface Destination {
  /** In metrics and in the log. */
  name: string;
  type: 'otel-collector' | 'webhook';
  url: string;
  /** Sent with each request, names in lower case; may hold credentials. */
  headers: Readonly<Record<string, string>>;
  /** Signs what is sent; undefined: it is not signed. */
  secret: string | undefined;
  /** Ids and slugs; undefined: all that say so. */
  workspaces: readonly string[] | undefined;
  /** Whether it is told what was asked and answered, where that is kept. */
  include_content: boolean;
  /** In ten-thousandths. */
  share_bp: number;
}
