/** An analyzer of the operator's with the HTTP API of Presidio. */
export interface PresidioSettings {
  /** Without a slash at the end; `/analyze` follows. */
  base_url: string;
  /** Never logged, never sent to a client. */
  api_key: string | undefined;
  /** Of the texts, as the analyzer calls it. */
  language: string;
  /** What it is less sure of is none. */
  score_min: number;
}
