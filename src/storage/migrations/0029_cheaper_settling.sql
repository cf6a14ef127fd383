-- The sums of usage of a batch that are not yet part of analytics_usage and analytics_buckets, as one text: [hour, series, the measures in the
-- order of analytics_usage, then pairs of metric * 1000 + bucket and calls] for each hour and series.
CREATE TABLE analytics_pending (
  node_id TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  batch BIGINT NOT NULL,
  sums TEXT NOT NULL,
  PRIMARY KEY (node_id, epoch, batch)
);

-- Indexes that lists of generations follow, with short entries: the first characters of ids, which are random, and the time as a number. The
-- rows that they find are compared with the whole ids.
DROP INDEX ledger_generations_key;
DROP INDEX ledger_generations_workspace;
DROP INDEX ledger_generations_user;
DROP INDEX ledger_generations_model;
DROP INDEX ledger_generations_app;
CREATE INDEX ledger_generations_key ON ledger_generations (substr(key_hash, 1, 12), admitted_at);
CREATE INDEX ledger_generations_workspace ON ledger_generations (substr(workspace_id, 1, 8), admitted_at);
CREATE INDEX ledger_generations_user ON ledger_generations (substr(user_id, 1, 8), admitted_at) WHERE user_id IS NOT NULL;
CREATE INDEX ledger_generations_model ON ledger_generations (substr(organization_id, 1, 8), model, admitted_at);
CREATE INDEX ledger_generations_app ON ledger_generations (substr(organization_id, 1, 8), app, admitted_at) WHERE app IS NOT NULL;
