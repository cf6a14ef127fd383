-- What was used of each rate limit in its newest window, and what the last statement gave of it. Times are milliseconds since
-- 1970. The next window uses the row anew; it is deleted when it was not counted in for longer than any window lasts.

CREATE TABLE rate_windows (
  id TEXT PRIMARY KEY NOT NULL,
  window_start BIGINT NOT NULL,
  used BIGINT NOT NULL,
  granted BIGINT NOT NULL,
  counted_at BIGINT NOT NULL
);
CREATE INDEX rate_windows_counted ON rate_windows (counted_at);
