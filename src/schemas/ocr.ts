/** How the engine is reached that reads pictures of pages: Mistral's OCR API, or another service that speaks it. */
export interface OcrSettings {
  base_url: string;
  /** Never logged, never sent to a client. */
  api_key: string | undefined;
  model: string;
  /** What a page costs, in nano-USD. */
  page_nano: number;
}
