-- Lists of generations filter by every dimension of usage: the series of a generation has their values. It is read from the index of
-- time; tagged generations have an index of their own.
DROP INDEX ledger_generations_time;
CREATE INDEX ledger_generations_time ON ledger_generations
  (organization_id, created_at, id, cost, latency, provider_name, requested_model, finish_reason, streamed, outcome, series);
CREATE INDEX ledger_generations_tags ON ledger_generations (organization_id, created_at, id, tags, cost, series)
  WHERE tags IS NOT NULL;
