/** The scales of charts: round values upwards, and dates along. */
/** Lines of a chart, the one at zero included. */
const LINES_MAX = 5;
/** Labels along the times of a chart; on narrow screens every second one. */
const LABELS_MAX = 8;
/** Hours of a day, or minutes of an hour, between two labels. */
const HOUR_STEPS = [1, 2, 3, 4, 6, 8, 12, 24];
const MINUTE_STEPS = [1, 2, 5, 10, 15, 30, 60];
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Round values from zero to the first one that is not below `most`. */
export function axisOf(most: number): { top: number; ticks: number[] } {
  if (!(most > 0)) return { top: 1, ticks: [0] };
  const rough = most / (LINES_MAX - 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough * 0.999_999) ?? 10);
  const steps = Math.ceil(most / step - 1e-9);
  // A product, not a sum: sums of decimals drift.
  return { top: steps * step, ticks: Array.from({ length: steps + 1 }, (_, index) => index * step) };
}

/** The text of a round value, without zeros that say nothing. */
export const tickText = (text: string): string =>
  text
    .replace(/(\.\d*?)0+(?!\d)/, '$1')
    .replace(/\.(?!\d)/, '')
    .replace(/^0 .*/, '0');

/** The minute of an hour, or the hour of a day. */
const placeOf = (text: string, isMinutes: boolean): number =>
  Number(isMinutes ? text.slice(14, 16) : text.slice(11, 13));

/** The times that have a label, with it: the hour, with the day below it where that changes; the day; or the month. */
export function placesOf(
  times: readonly string[],
  /** A time as `YYYY-MM-DD HH:MM`, in the zone that the person chose. */
  textOf: (time: string) => string,
): { index: number; text: string; isMinor: boolean }[] {
  const rough = Math.max(1, Math.ceil(times.length / LABELS_MAX));
  const isMinutes = times.some((time) => time.includes('T') && time.slice(14, 16) !== '00');
  const steps = !times[0]?.includes('T') ? [] : isMinutes ? MINUTE_STEPS : HOUR_STEPS;
  const step = steps.find((one) => one >= rough) ?? (steps.length > 0 ? Math.ceil(rough / 24) * 24 : rough);
  const first = steps.length === 0 ? 0 : times.findIndex((time) => placeOf(textOf(time), isMinutes) % step === 0);
  const start = Math.max(0, first);
  const isMonthly = times.length > 1 && times.every((time) => /^\d{4}-\d\d-01$/.test(time));
  let day = '';
  return times.flatMap((time, index) => {
    if (index < start || (index - start) % step !== 0) return [];
    const isHour = time.includes('T');
    const shown = isHour ? textOf(time) : time;
    const month = MONTHS[Number(shown.slice(5, 7)) - 1] ?? '';
    const date = `${month} ${Number(shown.slice(8, 10))}`;
    const hour = shown.slice(11, 16);
    const isNew = date !== day;
    day = date;
    const text = isMonthly ? `${month} ${shown.slice(0, 4)}` : !isHour ? date : isNew ? `${hour}\n${date}` : hour;
    return [{ index, text, isMinor: ((index - start) / step) % 2 === 1 }];
  });
}
