/** Adds each entry: spread into the arguments of `push`, a list as long as clients and upstreams may send overflows the stack. */
export function append<T>(to: T[], more: Iterable<T>): void {
  for (const one of more) to.push(one);
}
