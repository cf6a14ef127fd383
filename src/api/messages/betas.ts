import type { IncomingHttpHeaders } from 'node:http';

/** The beta features that a client requests, by either name of the header. */
export function betasOf(headers: IncomingHttpHeaders): string[] {
  const values = [headers['anthropic-beta'], headers['x-anthropic-beta']].flatMap((value) => value ?? []);
  const betas = values.flatMap((value) => value.split(',')).map((beta) => beta.trim());
  return [...new Set(betas.filter((beta) => beta !== ''))];
}
