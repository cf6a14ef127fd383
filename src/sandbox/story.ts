/** Words of one token each, also with the mark after them; some are not ASCII, so that chunks cut characters of several bytes. */
const words = (
  'a the one some old new small quick quiet warm blue gold river stone house light storm bread garden cloud ' +
  'bird wolf tree café naïve über señor žluť 雪 ☕ 🌍 sings keeps finds asks tells walks turns waits opens holds ' +
  'near under past above after with and but then so while again never soon here there'
).split(' ');

/** A number of 32 bits that depends on every character of the text. FNV-1a, good enough to choose words by. */
function seedOf(text: string): number {
  let seed = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) seed = Math.imul(seed ^ text.charCodeAt(at), 0x01000193);
  return seed >>> 0;
}

/** Tells a story of exactly so many tokens; the same seed text tells the same story. */
export function storyTokens(seed_text: string, tokens: number): string[] {
  let state = seedOf(seed_text) || 1;
  const story: string[] = [];
  for (let at = 0; at < tokens; at += 1) {
    // Xorshift: each step visits another of the 2^32 - 1 states.
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    const word = words[(state >>> 0) % words.length]!;
    const starts = at % 12 === 0;
    const ends = at % 12 === 11 || at === tokens - 1;
    const told = starts ? word.charAt(0).toUpperCase() + word.slice(1) : word;
    story.push(`${at === 0 ? '' : ' '}${told}${ends && word.length < 6 ? '.' : ''}`);
  }
  return story;
}
