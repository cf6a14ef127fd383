import { type Signal, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { axisOf, placesOf, tickText } from './axis.ts';
import { momentText, time as timeText } from './format.ts';

/** One line or stack of a chart; `null` where there is no value. */
export interface Series {
  name: string;
  values: (number | null)[];
  /** The target of a click on each value; a table beside the chart has the same links. */
  hrefs?: readonly string[];
}

const WIDTH = 800;
const HEIGHT = 220;

/** The colours of a chart: further series are summed before they are drawn. */
export const SERIES_MAX = 8;

function largest(times: readonly string[], series: readonly Series[], isStacked: boolean): number {
  let most = 0;
  for (const index of times.keys()) {
    let sum = 0;
    for (const { values } of series) {
      const value = values[index] ?? 0;
      sum += Math.max(0, value);
      if (!isStacked) most = Math.max(most, value);
    }
    if (isStacked) most = Math.max(most, sum);
  }
  return most;
}

function Bars({ times, series, most, onOpen }: ChartProps & { most: number }) {
  const width = WIDTH / Math.max(1, times.length);
  const gap = Math.min(2, width * 0.2);
  return (
    <>
      {times.map((time, index) => {
        let top = HEIGHT;
        return series.map(({ name, values, hrefs }, at) => {
          const href = hrefs?.[index];
          const value = values[index] ?? 0;
          const height = most === 0 ? 0 : (Math.max(0, value) / most) * HEIGHT;
          top -= height;
          if (height === 0) return null;
          return (
            // biome-ignore lint/a11y/noStaticElementInteractions: the table beside the chart has the same links.
            <rect
              key={`${time} ${name}`}
              class={`s${at}${href === undefined ? '' : ' opens'}`}
              onClick={href === undefined ? undefined : () => onOpen?.(href)}
              x={index * width + gap / 2}
              y={top}
              width={Math.max(0.5, width - gap)}
              height={height}
            />
          );
        });
      })}
    </>
  );
}

function Lines({ times, series, most }: ChartProps & { most: number }) {
  const step = WIDTH / Math.max(1, times.length);
  return (
    <>
      {series.map(({ name, values }, at) => {
        const points = times.map((time, index) => {
          const value = values[index] ?? null;
          if (value === null) return undefined;
          return { time, x: (index + 0.5) * step, y: HEIGHT - (most === 0 ? 0 : (value / most) * HEIGHT) };
        });
        // A gap where there is no value.
        let path = '';
        for (const [index, point] of points.entries()) {
          if (point) path += `${points[index - 1] ? 'L' : 'M'}${point.x.toFixed(1)} ${point.y.toFixed(1)}`;
        }
        return (
          <g key={name} class={`s${at}`}>
            <path d={path} />
            {points.map(
              (point) =>
                point && (
                  // A line without length has round ends that stay round when the chart is stretched.
                  <path key={point.time} class="point" d={`M${point.x} ${point.y}h0.01`} />
                ),
            )}
          </g>
        );
      })}
    </>
  );
}

interface ChartProps {
  /** The beginnings of the groups, in order. */
  times: readonly string[];
  series: readonly Series[];
  /** Values that may be added are stacked bars; others are lines. */
  isStacked: boolean;
  format(value: number): string;
  label: string;
  onOpen?(href: string): void;
}

/** The values at the pointer, beside the bar or the points that it is on. */
function Values({ at, times, series, isStacked, format }: ChartProps & { at: Signal<number | undefined> }) {
  const index = at.value;
  const time = index === undefined ? undefined : times[index];
  if (index === undefined || time === undefined) return null;
  const rows = series.flatMap(({ name, values }, place) => {
    const value = values[index] ?? null;
    return value === null ? [] : [{ name, value, place }];
  });
  const sum = rows.reduce((all, { value }) => all + value, 0);
  const width = 100 / times.length;
  const isRight = index >= times.length / 2;
  const side = isRight ? { right: `${100 - width * index}%` } : { left: `${width * (index + 1)}%` };
  return (
    <>
      <i class="plot-at" style={{ left: `${width * index}%`, width: `${width}%` }} />
      <div class="plot-values" style={side}>
        <strong>{momentText(time)}</strong>
        {rows.length === 0 && <div class="dim">no calls</div>}
        {rows.map(({ name, value, place }) => (
          <div key={name}>
            <i class={`s${place}`} /> <bdi>{name}</bdi> <span class="number">{format(value)}</span>
          </div>
        ))}
        {isStacked && rows.length > 1 && (
          <div class="total">
            Together <span class="number">{format(sum)}</span>
          </div>
        )}
      </div>
    </>
  );
}

/** A chart of values over time. A table beside it has the same numbers. */
export function Chart(props: ChartProps) {
  const { times, series, isStacked, format, label } = props;
  const at = useSignal<number | undefined>(undefined);
  const { top, ticks } = axisOf(largest(times, series, isStacked));
  const places = placesOf(times, (time) => timeText(time, false));
  const share = (index: number) => `${((index + 0.5) / times.length) * 100}%`;
  return (
    <figure class="plot">
      <div class="plot-area">
        <div class="plot-scale number" aria-hidden="true">
          {ticks.map((tick) => (
            <span key={tick} style={{ bottom: `${(tick / top) * 100}%` }}>
              {tickText(format(tick))}
            </span>
          ))}
          {/* Makes the column as wide as the widest of its labels. */}
          {ticks.map((tick) => (
            <b key={tick}>{tickText(format(tick))}</b>
          ))}
        </div>
        <div
          class="plot-frame"
          onPointerMove={(event) => {
            const { left, width } = event.currentTarget.getBoundingClientRect();
            const index = Math.floor(((event.clientX - left) / width) * times.length);
            at.value = Math.min(times.length - 1, Math.max(0, index));
          }}
          onPointerLeave={() => {
            at.value = undefined;
          }}
        >
          <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label} preserveAspectRatio="none">
            {ticks.map((tick) => {
              const y = HEIGHT * (1 - tick / top);
              return <line key={tick} x1="0" x2={WIDTH} y1={y} y2={y} class="grid" />;
            })}
            {isStacked ? <Bars {...props} most={top} /> : <Lines {...props} most={top} />}
          </svg>
          <Values {...props} at={at} />
        </div>
        <div
          class={`plot-times number${places.some(({ text }) => text.includes('\n')) ? ' two' : ''}`}
          aria-hidden="true"
        >
          {places.map(({ index, text, isMinor }) => (
            <span key={index} class={isMinor ? 'minor' : undefined} style={{ left: share(index) }}>
              {text}
            </span>
          ))}
        </div>
      </div>
      {series.length > 1 && <Legend of={series} />}
    </figure>
  );
}

const Legend = ({ of }: { of: readonly Series[] }): ComponentChildren => (
  <ul class="legend">
    {of.map(({ name }, at) => (
      <li key={name}>
        <i class={`s${at}`} /> <bdi>{name}</bdi>
      </li>
    ))}
  </ul>
);
