/** A destination of the operator's that receives records of calls, for workspaces with `is_observability_broadcast_enabled`. */
export interface Destination {
  /** Its name in metrics and in the log. */
  name: string;
  type: 'otel-collector' | 'webhook';
  url: string;
  /** Headers of each request, names in lower case. They may contain credentials. */
  headers: Readonly<Record<string, string>>;
  /** Key of the signature; undefined: requests are not signed. */
  secret: string | undefined;
  /** Ids and slugs of the workspaces; undefined: all that have broadcast enabled. */
  workspaces: readonly string[] | undefined;
  /** Whether the contents of requests and answers are sent as well, if they are logged. */
  include_content: boolean;
  /** The share of calls, in ten-thousandths. */
  share_bp: number;
}
