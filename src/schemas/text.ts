/** Whether every store keeps a text as it is: PostgreSQL takes no NUL, and UTF-8 has no lone surrogates. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\u0000');
}

/** Lower case of A to Z and nothing else: Unicode has other letters whose lower case is one of these, so that two addresses would be one. */
export function lowerAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
