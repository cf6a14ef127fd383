/** What a page hands to the playground: taken once. */
let draft: { system: string; prompt: string } | undefined;

export function keepDraft(next: { system: string; prompt: string }): void {
  draft = next;
}

export function takeDraft(): { system: string; prompt: string } | undefined {
  const taken = draft;
  draft = undefined;
  return taken;
}
