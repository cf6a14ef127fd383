/** Whether a name matches a pattern in which `*` stands for any text. Linear: each piece is searched once, from left to right. */
export function matchesPattern(name: string, pattern: string): boolean {
  const pieces = pattern.split('*');
  const [first = ''] = pieces;
  if (pieces.length === 1) return name === pattern;
  const last = pieces.at(-1) ?? '';
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const piece of pieces.slice(1, -1)) {
    const index = name.indexOf(piece, at);
    if (index === -1) return false;
    at = index + piece.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}
