/** Settings of an analyzer with the HTTP API of Presidio. */
export interface PresidioSettings {
  /** Without a trailing slash; `/analyze` is appended. */
  base_url: string;
  /** Never logged, never sent to a client. */
  api_key: string | undefined;
  /** The language of the texts, as a code of the analyzer. */
  language: string;
  /** Results with a lower score are ignored. */
  score_min: number;
}
