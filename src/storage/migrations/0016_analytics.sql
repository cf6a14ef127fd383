-- Sums of usage, kept as calls settle. One row for each hour and each day, and for each series of calls: those of one node with the same
-- values of all dimensions. Several tags, and several guardrails, are one text with commas.
CREATE TABLE analytics_series (
  id BIGINT PRIMARY KEY NOT NULL,
  node_id TEXT NOT NULL,
  organization_id TEXT NOT NULL,
  workspace_id TEXT NOT NULL,
  key_hash TEXT NOT NULL,
  user_id TEXT NOT NULL,
  model TEXT NOT NULL,
  provider_name TEXT NOT NULL,
  operation TEXT NOT NULL,
  status TEXT NOT NULL,
  finish_reason TEXT NOT NULL,
  app TEXT NOT NULL,
  tags TEXT NOT NULL,
  external_user TEXT NOT NULL,
  guardrails TEXT NOT NULL
);

-- span: hours of a row, 1 or 24. start: its first hour, counted from 1970.
CREATE TABLE analytics_usage (
  span BIGINT NOT NULL,
  start BIGINT NOT NULL,
  series BIGINT NOT NULL,
  requests BIGINT NOT NULL,
  errors BIGINT NOT NULL,
  byok_requests BIGINT NOT NULL,
  guardrail_requests BIGINT NOT NULL,
  usage_nano BIGINT NOT NULL,
  byok_usage_nano BIGINT NOT NULL,
  cache_nano BIGINT NOT NULL,
  fees_nano BIGINT NOT NULL,
  web_nano BIGINT NOT NULL,
  prompt_tokens BIGINT NOT NULL,
  completion_tokens BIGINT NOT NULL,
  reasoning_tokens BIGINT NOT NULL,
  cached_tokens BIGINT NOT NULL,
  cache_write_tokens BIGINT NOT NULL,
  audio_tokens BIGINT NOT NULL,
  image_tokens BIGINT NOT NULL,
  latency_count BIGINT NOT NULL,
  latency_ms BIGINT NOT NULL,
  ttft_count BIGINT NOT NULL,
  ttft_ms BIGINT NOT NULL,
  timed_tokens BIGINT NOT NULL,
  timed_ms BIGINT NOT NULL,
  PRIMARY KEY (span, start, series)
);

-- Histograms of the rows of hours. metric: 0 latency, 1 time to first token (ms), 2 throughput (tokens per 1000 s). Bucket n: values around 1.1^n.
CREATE TABLE analytics_buckets (
  span BIGINT NOT NULL,
  start BIGINT NOT NULL,
  series BIGINT NOT NULL,
  metric BIGINT NOT NULL,
  bucket BIGINT NOT NULL,
  calls BIGINT NOT NULL,
  PRIMARY KEY (span, start, series, metric, bucket)
);

-- The series that a generation was counted in; null: it is not counted yet.
ALTER TABLE ledger_generations ADD COLUMN series BIGINT;
-- The caller's tags with commas between them; null: none.
ALTER TABLE ledger_generations ADD COLUMN tags TEXT;
CREATE INDEX ledger_generations_uncounted ON ledger_generations (id) WHERE series IS NULL;

-- What organizations have spent on the gateway's accounts over all time, by counted generations of each node; node '': corrections.
CREATE TABLE organization_usage (
  organization_id TEXT NOT NULL,
  node_id TEXT NOT NULL,
  usage_nano BIGINT NOT NULL,
  PRIMARY KEY (organization_id, node_id)
);
