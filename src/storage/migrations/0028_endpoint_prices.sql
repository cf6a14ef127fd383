-- The prices of each endpoint over time. A row is only added; the oldest rows of an endpoint beyond a bound are deleted.

CREATE TABLE endpoint_prices (
  endpoint_id TEXT NOT NULL,
  -- Counts the rows of the endpoint, so that of several nodes one adds the next row.
  seq BIGINT NOT NULL,
  -- Milliseconds since 1970, from when on the prices are known to be in force.
  from_ms BIGINT NOT NULL,
  -- JSON: all prices of the endpoint, in pico-USD.
  prices TEXT NOT NULL,
  PRIMARY KEY (endpoint_id, seq)
);
