import { daysLeft, expiryWarnings } from '../catalog/expiry.ts';
import type { Config } from '../config.ts';
import type { Logger } from '../telemetry/log.ts';

/**
 * The days before a model's last day on which the log warns of it, the interval of the warnings, and the models that one warning
 * names.
 */
const EXPIRY_NOTICE_DAYS = 30;
const EXPIRY_NOTICE_MS = 86_400_000;
const EXPIRY_NOTICES_MAX = 20;

/**
 * Logs warnings of models that are about to expire or have expired, at once and then once a day. Returns a function that takes
 * over another configuration and logs its warnings at once.
 */
export function warnOfExpiry(config: Config, log: Logger): (next: Config) => void {
  let current = config;
  const warn = () => {
    const dated = current.models.flatMap(({ id, expiration_date }) =>
      expiration_date !== undefined && daysLeft(expiration_date, Date.now()) <= EXPIRY_NOTICE_DAYS
        ? [{ id, expiration_date }]
        : [],
    );
    const warnings = expiryWarnings(dated, Date.now());
    for (const { message } of warnings.slice(0, EXPIRY_NOTICES_MAX)) log.warn(message);
    const more = warnings.length - EXPIRY_NOTICES_MAX;
    if (more > 0) log.warn(`${more} more models expire within ${EXPIRY_NOTICE_DAYS} days, or have expired`);
  };
  warn();
  setInterval(warn, EXPIRY_NOTICE_MS).unref();
  return (next) => {
    current = next;
    warn();
  };
}
