/** Long work of requests takes at most so much of one turn of the event loop, of all requests together, apart from its last step. */
const TURN_MS = 10;
/** While new connections arrive, long work waits so long between two turns. */
const ARRIVALS_MS = 50;

interface Waiter {
  wake(): void;
  followingMs: number;
}

/** The requests that wait for a turn, in order of arrival, and the index of the next one. */
let waiting: Waiter[] = [];
let next = 0;
let isScheduled = false;
let isArriving = false;
let servedMs = Number.NEGATIVE_INFINITY;

/**
 * Resolves in a later turn of the event loop, after others were served. Who divides long work awaits it between two steps. Hundreds of
 * requests may do so at once, and Node runs all that is due in one turn: here they take turns, and connections are served in between.
 * `followingMs`: about so much more time is taken by events that the step makes possible, such as the next read of a connection.
 */
export function nextTurn(followingMs = 0): Promise<void> {
  return new Promise((wake) => {
    waiting.push({ wake, followingMs });
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(serve);
  });
}

/** A connection was accepted. The event loop accepts one in each turn, so turns are short as long as more arrive. */
export function noteArrival(): void {
  isArriving = true;
}

function serve(): void {
  const begunMs = performance.now();
  const isPutOff = isArriving && begunMs - servedMs < ARRIVALS_MS;
  isArriving = false;
  if (isPutOff) {
    setImmediate(serve);
    return;
  }
  // Who waits again has had its step of this turn.
  const last = waiting.length;
  let untilMs = begunMs + TURN_MS;
  const serveNext = () => {
    const nowMs = performance.now();
    if (next < last && (next === 0 || nowMs < untilMs)) {
      const { wake, followingMs } = waiting[next]!;
      next += 1;
      untilMs -= followingMs;
      wake();
      // The step runs as microtasks; `process.nextTick` waits for all of them.
      queueMicrotask(() => process.nextTick(serveNext));
      return;
    }
    waiting = waiting.slice(next);
    next = 0;
    servedMs = nowMs;
    isScheduled = waiting.length > 0;
    if (isScheduled) setImmediate(serve);
  };
  serveNext();
}
