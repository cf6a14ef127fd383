/** The address of the console's root: pages are one level below it, wherever a proxy serves the gateway. */
export const base = location.pathname.replace(/[^/]*$/, '');

/** The console's root with its origin, for requests from other programs. */
export const home = `${location.origin}${base}`;

/** Leads to the sign-in page, and back to this page afterwards. */
export function signIn(): void {
  const here = `/${location.pathname.slice(base.length)}${location.search}`;
  location.assign(`${base}sign-in?${new URLSearchParams({ return_to: here })}`);
}
