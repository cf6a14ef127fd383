import { tokensOf } from './tokens.ts';

/** The words that differ between stories. Each is one token with the mark behind it, so that all stories have the same length. */
const bakers = ['Ada', 'Ines', 'Lena', 'Mira', 'Noor', 'Selma', 'Yara', 'Zoë'];
const children = ['Ben', 'Ivo', 'Jan', 'Kai', 'Luis', 'Omar', 'Per', 'Tom'];
const towns = ['Alva', 'Brenn', 'Holm', 'Lunde', 'Marn', 'Orla', 'Tarn', 'Velm'];
const colours = ['red', 'green', 'gold', 'blue', 'white'];

/** The text of a story. Some characters have several bytes, so that small writes divide them. */
function story(pick: (words: readonly string[]) => string): string {
  const [baker, child, town, colour] = [pick(bakers), pick(children), pick(towns), pick(colours)];
  return `The winter storm took the only bridge of ${town}. On this side stood the café, with forty loaves in its oven. On the \
other side stood the school, with forty cold children and no lunch.

"We need a boat," said ${baker}, who baked the bread.

"We have a kite," said ${child}, who was nine and had stayed home with a cough. It was ${colour} and old.

They tied a thin string to it and let it go. The wind carried it over the river like a bird that knew the way. On the far bank a \
teacher caught it and began to pull. After the string came a rope, and after the rope came a basket, and in the basket lay the bread, \
still warm, with a note: "Please send the basket back."

It came back with a drawing of snow (雪), a cup of cocoa (☕) and the whole round world (🌍), signed by forty names.

In spring ${town} built a new bridge. Nobody has missed a lunch since. But when the first snow falls, ${baker} still bakes forty loaves, \
and ${child}, who is tall now, still brings the kite.`;
}

/** A 32-bit hash of a text (FNV-1a). */
function seedOf(text: string): number {
  let seed = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) seed = Math.imul(seed ^ text.charCodeAt(at), 0x01000193);
  return seed >>> 0;
}

/** An endless sequence of stories for a seed. */
function* stories(seed_text: string): Generator<string, never, undefined> {
  let state = seedOf(seed_text) || 1;
  const pick = (words: readonly string[]): string => {
    // Xorshift: each step visits another of the 2^32 - 1 states.
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return words[(state >>> 0) % words.length] ?? '';
  };
  for (;;) yield story(pick);
}

/** The length of a story in tokens. */
export const STORY_TOKENS = tokensOf(story(([first = '']) => first)).length;

/** The first `tokens` tokens of the stories of a seed text. The same text gives the same tokens. */
export function storyTokens(seed_text: string, tokens: number): string[] {
  const pieces: string[] = [];
  for (const text of stories(seed_text)) {
    for (const piece of tokensOf(pieces.length === 0 ? text : `\n\n${text}`)) {
      if (pieces.length === tokens) return pieces;
      pieces.push(piece);
    }
  }
  return pieces;
}
