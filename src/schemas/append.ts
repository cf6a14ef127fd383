/** Appends all entries. (Spreading a very long list into the arguments of `push` would overflow the stack.) */
export function append<T>(to: T[], more: Iterable<T>): void {
  for (const one of more) to.push(one);
}
