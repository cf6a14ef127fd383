/** The notation of a call and of its result in text. Chat models of many makers are trained on these tags. */
export const CALL_OPEN = '<tool_call>';
export const CALL_CLOSE = '</tool_call>';
export const RESULT_OPEN = '<tool_response>';
export const RESULT_CLOSE = '</tool_response>';

/** JSON text in which no string can end the block around it. */
export function insideMarkup(json: string): string {
  return json.replace(/<(?=\/?tool(?:s|_call|_response)>)/g, '\\u003c');
}

/** The facts of a request that the reader of its answer needs. Plain data of the attempt's state. */
export interface ToolTemplate {
  /** The tools that may be called. */
  names: string[];
  /** A call is required: an object without tags at the beginning of the answer is a call as well. */
  is_forced: boolean;
  /** One call at most. */
  is_single: boolean;
}
