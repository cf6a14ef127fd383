import { readFileSync } from 'node:fs';
import ipaddr from 'ipaddr.js';
import { limits } from '../limits.ts';
import type { ReadFile } from './read-file.ts';
import { filled } from './settings/declare.ts';
import { http } from './settings/service.ts';

/** How connections of clients are treated. */
export interface HttpConfig {
  /** Addresses and CIDR ranges of proxies whose `X-Forwarded-For` counts, and whose connections are not counted by address. */
  trusted_proxies: readonly string[];
  /** Connections of clients that this process keeps open at a time, in all and of one address. */
  connections_max: number;
  connections_per_address_max: number;
}

function isAddressOrRange(text: string): boolean {
  if (text.includes('/')) return ipaddr.isValidCIDR(text);
  return text.includes(':') ? ipaddr.IPv6.isValid(text) : ipaddr.IPv4.isValidFourPartDecimal(text);
}

/**
 * How many files and sockets this process may have open; undefined if the system does not report it. Node has raised the soft
 * limit to the hard one at its start.
 */
function openFilesMax(): number | undefined {
  try {
    const line = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
    return line?.[1] === undefined ? undefined : Number(line[1]);
  } catch {
    return undefined;
  }
}

/** The number of connections that leaves each one a connection to a provider, and the store and the journal theirs. */
function connectionsThatFit(filesMax: number): number {
  return Math.max(1, Math.floor((filesMax - limits.open_files_kept) / 2));
}

/** Reads the section `http`. More connections than the limit of open files has room for are refused at the start. */
export function readHttp(file: ReadFile | undefined, filesMax = openFilesMax()): HttpConfig {
  const section = filled(http, file?.value.http);
  for (const [index, entry] of section.trusted_proxies.entries()) {
    if (!isAddressOrRange(entry)) {
      throw file!.wrong(['http', 'trusted_proxies', index], `must be an IP address or a range such as 10.0.0.0/8`);
    }
  }
  const fitting = filesMax === undefined ? Number.POSITIVE_INFINITY : connectionsThatFit(filesMax);
  if ((section.connections_max ?? 0) > fitting) {
    throw file!.wrong(
      ['http', 'connections_max'],
      `must be at most ${fitting}: this process may have ${filesMax} open files (ulimit -n)`,
    );
  }
  const connectionsMax = section.connections_max ?? Math.min(limits.connections_max, fitting);
  return {
    trusted_proxies: section.trusted_proxies,
    connections_max: connectionsMax,
    connections_per_address_max:
      section.connections_per_address_max ??
      Math.max(1, Math.floor(connectionsMax / limits.connections_address_divisor)),
  };
}
