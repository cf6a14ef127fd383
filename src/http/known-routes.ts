import type { FastifyRequest, RouteOptions } from 'fastify';
import type { ErrorFormat } from './error-envelope.ts';

interface KnownRoute {
  methods: Set<string>;
  errorFormat: ErrorFormat | undefined;
}

/** What stands at a path, or above it. */
export interface PathAnswer {
  /** Empty: the path has no operation. */
  methods: readonly string[];
  /** The form of errors of the operation that the path is, or stands under. */
  errorFormat: ErrorFormat | undefined;
}

/** How a route pattern (`/keys/:hash`) fits a path: how many of its steps are one, and how many are the path's own words; undefined: it is of another path. */
function fitOf(pattern: string, path: string): { steps: number; literal: number } | undefined {
  const expected = pattern.split('/');
  const steps = path.split('/');
  const fits = expected.every(
    (step, index) => steps[index] !== undefined && (step.startsWith(':') || step === steps[index]),
  );
  const literal = expected.filter((step) => !step.startsWith(':')).length;
  return fits ? { steps: expected.length, literal } : undefined;
}

const pathIn = (url: string): string => (url.split('?')[0] ?? '').replace(/(?<=.)\/$/, '');

/** The routes of a server, for what none of them answers. */
export function createKnownRoutes() {
  const routes = new Map<string, KnownRoute>();
  /** By a pattern with parameters: the paths that it fits and that are operations of their own. Made with the first request. */
  let shadowed: Map<string, Map<string, KnownRoute>> | undefined;

  const findShadowed = () => {
    const byPattern = new Map<string, Map<string, KnownRoute>>();
    for (const [path, route] of routes) {
      if (path.includes(':')) continue;
      for (const pattern of routes.keys()) {
        const isParametric = pattern.includes(':') && pattern.split('/').length === path.split('/').length;
        if (!isParametric || fitOf(pattern, path) === undefined) continue;
        const paths = byPattern.get(pattern) ?? new Map<string, KnownRoute>();
        byPattern.set(pattern, paths.set(path, route));
      }
    }
    return byPattern;
  };

  return {
    add({ url, method, config }: RouteOptions): void {
      const { methods, errorFormat } = routes.get(url) ?? { methods: new Set(), errorFormat: undefined };
      for (const name of [method].flat()) methods.add(name);
      routes.set(url, { methods, errorFormat: errorFormat ?? config?.errorFormat });
    },

    /** Every method that some path has. */
    methods: (): string[] => [...new Set([...routes.values()].flatMap(({ methods }) => [...methods]))],

    at(url: string): PathAnswer {
      const path = pathIn(url);
      const whole = path.split('/').length;
      const fitting = [...routes]
        .flatMap(([pattern, route]) => {
          const fit = fitOf(pattern, path);
          return fit === undefined ? [] : [{ ...route, ...fit }];
        })
        .sort((one, other) => other.steps - one.steps || other.literal - one.literal);
      const own = fitting.find(({ steps }) => steps === whole);
      return {
        methods: [...(own?.methods ?? [])],
        errorFormat: fitting.find(({ errorFormat }) => errorFormat !== undefined)?.errorFormat,
      };
    },

    /** Whether a route took a request only because the operation of that very path has other methods: `GET /guardrails/test` is no guardrail. */
    isShadowed({ route, url, method }: FastifyRequest): boolean {
      shadowed ??= findShadowed();
      const paths = route.url === undefined ? undefined : shadowed.get(route.url);
      return paths?.get(pathIn(url))?.methods.has(method) === false;
    },
  };
}
