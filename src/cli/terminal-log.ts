import type { Destination } from '../telemetry/log.ts';
import { oneLine } from './one-line.ts';

type Facts = Readonly<Record<string, unknown>>;

const PLAIN = { dim: '', green: '', yellow: '', red: '', off: '' };
const COLOURED: typeof PLAIN = {
  dim: '\x1b[2m',
  green: '\x1b[32m',
  yellow: '\x1b[33m',
  red: '\x1b[31m',
  off: '\x1b[0m',
};

/** Fastify's own line, which the announcement repeats. */
const REDUNDANT = /^Server listening at /;

/** A log for people: converts the JSON lines of the log to text for a terminal. */
export function readableOutput(output: Destination, { hasColours }: { hasColours: boolean }): Destination {
  const colours = hasColours ? COLOURED : PLAIN;
  return {
    write(line) {
      const facts = JSON.parse(line) as Facts;
      if (REDUNDANT.test(String(facts['msg']))) return;
      output.write(facts['msg'] === 'request' ? requestLine(facts, colours) : plainLine(facts, colours));
    },
  };
}

/** The local time of day. */
function timeOf({ time }: Facts): string {
  const at = new Date(String(time));
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':');
}

/** A value as one safe line: texts of clients could move the cursor, or end the line. */
function shown(value: unknown): string {
  return oneLine(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));
}

function requestLine(facts: Facts, colours: typeof PLAIN): string {
  const { method, path, status, model, served_model, provider, prompt_tokens, completion_tokens, cost, ms } = facts;
  const colour = Number(status) >= 500 ? colours.red : Number(status) >= 400 ? colours.yellow : colours.green;
  const parts = [
    `${colours.dim}${timeOf(facts)}${colours.off}`,
    `${method} ${shown(path)}`,
    `${colour}${status}${colours.off}`,
    ...((served_model ?? model) === undefined ? [] : [shown(served_model ?? model)]),
    ...(provider === undefined ? [] : [shown(provider)]),
    ...(prompt_tokens === undefined ? [] : [`${prompt_tokens} + ${completion_tokens} tokens`]),
    ...(typeof cost === 'number' ? [usd(cost)] : []),
    `${ms} ms`,
    ...(facts['client_left'] === true ? ['client left'] : []),
    ...(facts['gateway_stopped'] === true ? ['gateway stopped'] : []),
  ];
  return `${parts.join('  ')}\n`;
}

/** Exact: a call often costs a small part of a cent. */
function usd(cost: number): string {
  return `$${cost.toFixed(9).replace(/0{1,7}$/, '')}`;
}

function plainLine(facts: Facts, colours: typeof PLAIN): string {
  const { level, time, msg, err, ...rest } = facts;
  const isBad = level === 'error' || level === 'fatal';
  const colour = isBad ? colours.red : level === 'warn' ? colours.yellow : '';
  const word = level === 'info' ? '' : `${colour}${String(level).toUpperCase()}${colour === '' ? '' : colours.off}  `;
  const details = Object.entries(rest).map(([name, value]) => `${name}=${shown(value)}`);
  const head = `${colours.dim}${timeOf({ time })}${colours.off}  ${word}${[shown(msg ?? ''), ...details].join('  ')}`;
  return `${[head, ...errorLines(err)].join('\n')}\n`;
}

/** An error with its stack, and its causes below it. */
function errorLines(err: unknown): string[] {
  if (typeof err !== 'object' || err === null) return err === undefined ? [] : [`  ${shown(err)}`];
  const { stack, cause, ...rest } = err as Facts;
  const lines = typeof stack === 'string' ? stack.split('\n').map(oneLine) : [shown(rest)];
  return [...lines.map((line) => `  ${line}`), ...errorLines(cause)];
}
