import { DAY_MS } from '../schemas/budget.ts';
import type { Model } from './model.ts';

/** What is told of a model that its maker may remove. */
export interface ExpiryWarning {
  type: 'model_expires' | 'model_expired';
  model: string;
  expiration_date: string;
  message: string;
}

/** When a model may be gone: its last day is over, in UTC. */
export function expiresAt(expirationDate: string): number {
  return Date.parse(expirationDate) + DAY_MS;
}

/** Days until the last day of a model is over, in UTC; below 0 once it is. */
export function daysLeft(expirationDate: string, nowMs: number): number {
  return Math.ceil((expiresAt(expirationDate) - nowMs) / DAY_MS) - 1;
}

/** The warnings for those who use these models, each once. */
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
