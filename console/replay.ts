/** The call that a page passes to the playground; it can be read once. */
let draft: { system: string; prompt: string } | undefined;

export function keepDraft(next: { system: string; prompt: string }): void {
  draft = next;
}

export function takeDraft(): { system: string; prompt: string } | undefined {
  const taken = draft;
  draft = undefined;
  return taken;
}
