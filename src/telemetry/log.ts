import pino, { type Logger } from 'pino';

export type { Logger };

/** Fields that hold secrets wherever they turn up; what is under them is not written. */
const SECRETS = [
  'authorization',
  '*.authorization',
  'headers.authorization',
  '*.headers.authorization',
  '*["x-api-key"]',
  'api_key',
  '*.api_key',
  'credential',
  '*.credential',
  'secret',
  '*.secret',
];

/** The process's log: JSON lines on standard output. Content and secrets are not for it. */
export function createLog(level: string, destination?: { write(line: string): void }): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRETS, censor: '[redacted]' },
    },
    destination ?? pino.destination({ fd: 1, sync: false }),
  );
}
