import { daysLeft, expiryWarnings } from '../catalog/expiry.ts';
import type { Config } from '../config.ts';
import { limits } from '../limits.ts';
import type { Logger } from '../telemetry/log.ts';

/**
 * Logs warnings of models that are about to expire or have expired, at once and then once a day. Returns a function that takes
 * over another configuration and logs its warnings at once.
 */
export function warnOfExpiry(config: Config, log: Logger): (next: Config) => void {
  let current = config;
  const warn = () => {
    const dated = current.models.flatMap(({ id, expiration_date }) =>
      expiration_date !== undefined && daysLeft(expiration_date, Date.now()) <= limits.expiry_notice_days
        ? [{ id, expiration_date }]
        : [],
    );
    const warnings = expiryWarnings(dated, Date.now());
    for (const { message } of warnings.slice(0, limits.expiry_notices_max)) log.warn(message);
    const more = warnings.length - limits.expiry_notices_max;
    if (more > 0) log.warn(`${more} more models expire within ${limits.expiry_notice_days} days, or have expired`);
  };
  warn();
  setInterval(warn, limits.expiry_notice_ms).unref();
  return (next) => {
    current = next;
    warn();
  };
}
