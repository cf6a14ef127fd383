import { invalidField } from '../../errors.ts';
import type { ServerTool, ToolOutcome } from '../../inference/tools/server-tools.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { DATETIME } from '../asked.ts';
import { datetimeWish } from '../wishes.ts';

/** A moment as clocks show it in a time zone, with its distance from UTC: `2026-03-29T03:00:00+02:00`. */
export function datetimeIn(timezone: string, nowMs: number): string {
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    calendar: 'iso8601',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    timeZoneName: 'longOffset',
  }).formatToParts(nowMs);
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.find((one) => one.type === type)?.value ?? '';
  const offset = part('timeZoneName').replace('GMT', '') || '+00:00';
  const date = `${part('year').padStart(4, '0')}-${part('month')}-${part('day')}`;
  return `${date}T${part('hour')}:${part('minute')}:${part('second')}${offset}`;
}

/** The tool that tells the time, in the zone that the client or the model names. */
export function datetimeTool(parameters: JsonObject): ServerTool {
  const { timezone: usual } = datetimeWish(parameters, 'parameters');
  return {
    type: DATETIME,
    declaration: {
      type: 'function',
      function: {
        name: 'datetime',
        description: `Returns the current date and time, in the time zone ${usual} unless another is named.`,
        parameters: {
          type: 'object',
          properties: {
            timezone: { type: 'string', description: 'An IANA time zone such as Europe/Berlin.' },
          },
        },
      },
    },
    cost_nano_max: 0,
    async run(args, { now_ms }): Promise<ToolOutcome> {
      const named = args['timezone'];
      if (named != null && typeof named !== 'string') throw invalidField('timezone', 'must be a string');
      const timezone = named ? datetimeWish({ timezone: named }, 'arguments').timezone : usual;
      const content = JSON.stringify({ datetime: datetimeIn(timezone, now_ms), timezone });
      return { content, sources: [], cost_nano: 0, counts: {} };
    },
  };
}
