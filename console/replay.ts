/** What a kept call has that the playground can send again. */
export interface Draft {
  model: string;
  /** From the first to the last one, the system prompt included. */
  messages: { role: string; content?: unknown; tool_calls?: unknown; tool_call_id?: unknown }[];
  /** The tools, the response format and other fields of the request. */
  fields: Readonly<Record<string, unknown>>;
}

/** The call that a page passes to the playground; it can be read once. */
let draft: Draft | undefined;

export function keepDraft(next: Draft): void {
  draft = next;
}

export function takeDraft(): Draft | undefined {
  const taken = draft;
  draft = undefined;
  return taken;
}
