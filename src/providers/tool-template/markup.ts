/** How a tool is called in text, and how its result is written. Chat models of many makers are trained on these tags. */
export const CALL_OPEN = '<tool_call>';
export const CALL_CLOSE = '</tool_call>';
export const RESULT_OPEN = '<tool_response>';
export const RESULT_CLOSE = '</tool_response>';

/** The text of JSON so that none of its strings ends the block that it stands in. */
export function insideMarkup(json: string): string {
  return json.replace(/<(?=\/?tool(?:s|_call|_response)>)/g, '\\u003c');
}

/** What the reader of an answer must know of the request: plain data of the attempt. */
export interface ToolTemplate {
  /** The tools that may be called. */
  names: string[];
  /** A call must come: one without tags, at the beginning of the answer, is a call as well. */
  is_forced: boolean;
  /** One call at most. */
  is_single: boolean;
}
