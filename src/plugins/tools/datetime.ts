import { invalidField } from '../../errors.ts';
import type { ServerTool, ToolOutcome } from '../../inference/tools/server-tools.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { DATETIME } from '../requested-tools.ts';
import { readDatetimeOptions } from '../tool-options.ts';

/** The local time in a time zone with its UTC offset: `2026-03-29T03:00:00+02:00`. */
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

/** The tool for the current date and time, in the time zone of the model's call, else of the client's options. */
export function datetimeTool(parameters: JsonObject): ServerTool {
  const { timezone: defaultTimezone } = readDatetimeOptions(parameters, 'parameters');
  return {
    type: DATETIME,
    declaration: {
      type: 'function',
      function: {
        name: 'datetime',
        description: `Returns the current date and time, in the time zone ${defaultTimezone} unless another is named.`,
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
      const requested = args['timezone'];
      if (requested != null && typeof requested !== 'string') throw invalidField('timezone', 'must be a string');
      const timezone = requested ? readDatetimeOptions({ timezone: requested }, 'arguments').timezone : defaultTimezone;
      const content = JSON.stringify({ datetime: datetimeIn(timezone, now_ms), timezone });
      return { content, sources: [], cost_nano: 0, counts: {} };
    },
  };
}
