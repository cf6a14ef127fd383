import type { FastifyRequest, RouteOptions } from 'fastify';
import type { ErrorFormat } from './error-envelope.ts';

interface KnownRoute {
  methods: Set<string>;
  errorFormat: ErrorFormat | undefined;
}

/** The operations at a path. */
export interface PathAnswer {
  /** Empty if the path has no operation. */
  methods: readonly string[];
  /** The error format of the operation at the path, or of the nearest one above it. */
  errorFormat: ErrorFormat | undefined;
}

/** How a route pattern (`/keys/:hash`) fits a path: its number of segments, and how many of them are literal. Undefined if it does not fit. */
function fitOf(pattern: string, path: string): { segments: number; literal: number } | undefined {
  const expected = pattern.split('/');
  const segments = path.split('/');
  const fits = expected.every(
    (segment, index) => segments[index] !== undefined && (segment.startsWith(':') || segment === segments[index]),
  );
  const literal = expected.filter((segment) => !segment.startsWith(':')).length;
  return fits ? { segments: expected.length, literal } : undefined;
}

const pathIn = (url: string): string => (url.split('?')[0] ?? '').replace(/(?<=.)\/$/, '');

/** Records the routes of a server, to answer requests for unknown paths and methods. */
export function createKnownRoutes() {
  const routes = new Map<string, KnownRoute>();
  /** By a pattern with parameters: the operations with a literal path that it fits. Made at the first request. */
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

    /** The methods of all paths. */
    methods: (): string[] => [...new Set([...routes.values()].flatMap(({ methods }) => [...methods]))],

    at(url: string): PathAnswer {
      const path = pathIn(url);
      const whole = path.split('/').length;
      const fitting = [...routes]
        .flatMap(([pattern, route]) => {
          const fit = fitOf(pattern, path);
          return fit === undefined ? [] : [{ ...route, ...fit }];
        })
        .sort((one, other) => other.segments - one.segments || other.literal - one.literal);
      const own = fitting.find(({ segments }) => segments === whole);
      return {
        methods: [...(own?.methods ?? [])],
        errorFormat: fitting.find(({ errorFormat }) => errorFormat !== undefined)?.errorFormat,
      };
    },

    /** Whether a parametric route matched only because the operation of that literal path has other methods: `GET /guardrails/test` names no guardrail. */
    isShadowed({ route, url, method }: FastifyRequest): boolean {
      shadowed ??= findShadowed();
      const paths = route.url === undefined ? undefined : shadowed.get(route.url);
      return paths?.get(pathIn(url))?.methods.has(method) === false;
    },
  };
}
