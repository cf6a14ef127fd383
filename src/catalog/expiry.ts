import { DAY_MS } from '../schemas/budget.ts';
import type { Model } from './model.ts';

/** A warning about a model that its maker may remove. */
export interface ExpiryWarning {
  type: 'model_expires' | 'model_expired';
  model: string;
  expiration_date: string;
  message: string;
}

/** The time from which a model may be removed: the end of its last day in UTC, in milliseconds. */
export function expiresAt(expirationDate: string): number {
  return Date.parse(expirationDate) + DAY_MS;
}

/** Days until the end of a model's last day, in UTC; negative afterwards. */
export function daysLeft(expirationDate: string, nowMs: number): number {
  return Math.ceil((expiresAt(expirationDate) - nowMs) / DAY_MS) - 1;
}

/** The warnings for the users of these models, one per model. */
export function expiryWarnings(
  models: Iterable<Pick<Model, 'id' | 'expiration_date'>>,
  nowMs: number,
): ExpiryWarning[] {
  const warnings = new Map<string, ExpiryWarning>();
  for (const { id: model, expiration_date: expirationDate } of models) {
    if (expirationDate === null) continue;
    const days = daysLeft(expirationDate, nowMs);
    warnings.set(model, {
      type: days < 0 ? 'model_expired' : 'model_expires',
      model,
      expiration_date: expirationDate,
      message:
        days < 0
          ? `${model} may be removed at any time: its last day was ${expirationDate}`
          : `${model} may be removed after ${expirationDate}, in ${days + 1} ${days === 0 ? 'day' : 'days'}`,
    });
  }
  return [...warnings.values()];
}
