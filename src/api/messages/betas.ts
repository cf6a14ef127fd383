import type { IncomingHttpHeaders } from 'node:http';

/** What a client asks for that is still in trial, by either name of the header. */
export function betasOf(headers: IncomingHttpHeaders): string[] {
  const told = [headers['anthropic-beta'], headers['x-anthropic-beta']].flatMap((value) => value ?? []);
  const betas = told.flatMap((value) => value.split(',')).map((beta) => beta.trim());
  return [...new Set(betas.filter((beta) => beta !== ''))];
}
