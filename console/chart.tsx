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

function Bars({ times, series, most, format, onOpen }: ChartProps & { most: number }) {
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
            >
              <title>{`${time}, ${name}: ${format(value)}`}</title>
            </rect>
          );
        });
      })}
    </>
  );
}

function Lines({ times, series, most, format }: ChartProps & { most: number }) {
  const step = WIDTH / Math.max(1, times.length);
  return (
    <>
      {series.map(({ name, values }, at) => {
        const points = times.map((time, index) => {
          const value = values[index] ?? null;
          if (value === null) return undefined;
          return { time, value, x: (index + 0.5) * step, y: HEIGHT - (most === 0 ? 0 : (value / most) * (HEIGHT - 8)) };
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
                  <path key={point.time} class="point" d={`M${point.x} ${point.y}h0.01`}>
                    <title>{`${point.time}, ${name}: ${format(point.value)}`}</title>
                  </path>
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

/** A chart of values over time. A table beside it has the same numbers. */
export function Chart(props: ChartProps) {
  const { times, series, isStacked, format, label } = props;
  const most = largest(times, series, isStacked);
  return (
    <figure class="plot">
      <p class="dim number">{format(most)}</p>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label} preserveAspectRatio="none">
        {[0, 0.5, 1].map((share) => (
          <line key={share} x1="0" x2={WIDTH} y1={HEIGHT * share} y2={HEIGHT * share} class="grid" />
        ))}
        {isStacked ? <Bars {...props} most={most} /> : <Lines {...props} most={most} />}
      </svg>
      <figcaption>
        <span class="number">{times[0]}</span>
        <span class="number">{times.length > 1 ? times.at(-1) : ''}</span>
      </figcaption>
      {series.length > 1 && (
        <ul class="legend">
          {series.map(({ name }, at) => (
            <li key={name}>
              <i class={`s${at}`} /> <bdi>{name}</bdi>
            </li>
          ))}
        </ul>
      )}
    </figure>
  );
}
