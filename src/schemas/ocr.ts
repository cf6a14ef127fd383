/** Settings of the service that recognizes text in images of pages: Mistral's OCR API, or a compatible one. */
export interface OcrSettings {
  base_url: string;
  /** Never logged, never sent to a client. */
  api_key: string | undefined;
  model: string;
  /** Price per page, in nano-USD. */
  page_nano: number;
}
