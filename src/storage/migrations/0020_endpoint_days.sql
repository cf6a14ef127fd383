-- The calls of each endpoint on each UTC day, of all nodes: kept for a month, so that its uptime can be shown by day. A day is written
-- again while it lasts, and its counts never fall.

CREATE TABLE endpoint_days (
  endpoint_id TEXT NOT NULL,
  -- Days since 1970.
  day BIGINT NOT NULL,
  successes BIGINT NOT NULL,
  errors BIGINT NOT NULL,
  rate_limited BIGINT NOT NULL,
  PRIMARY KEY (endpoint_id, day)
);
CREATE INDEX endpoint_days_day ON endpoint_days (day);
