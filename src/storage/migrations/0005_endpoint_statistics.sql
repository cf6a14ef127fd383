-- How endpoints did, as each process counted it: minutes of the last half hour with how their times were spread, and quarter
-- hours of the last day. A row is its process's own count so far, written again as it grows. Times are minutes since 1970;
-- written_at is the store's clock in milliseconds, by which others find what is new and old rows are swept.

CREATE TABLE endpoint_statistics (
  endpoint_id TEXT NOT NULL,
  span BIGINT NOT NULL,
  start BIGINT NOT NULL,
  run TEXT NOT NULL,
  successes BIGINT NOT NULL,
  errors BIGINT NOT NULL,
  rate_limited BIGINT NOT NULL,
  tool_calls BIGINT NOT NULL,
  tool_calls_valid BIGINT NOT NULL,
  sketches TEXT NOT NULL,
  written_at BIGINT NOT NULL,
  PRIMARY KEY (endpoint_id, span, start, run)
);
CREATE INDEX endpoint_statistics_written ON endpoint_statistics (span, written_at);

-- When somebody last probed an endpoint, by the store's clock in milliseconds: whoever raises it is the one to probe.

CREATE TABLE endpoint_probes (
  endpoint_id TEXT PRIMARY KEY NOT NULL,
  probed_at BIGINT NOT NULL
);
