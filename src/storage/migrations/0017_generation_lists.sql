-- What generations are listed by. The model is null in rows that older versions wrote: a background task fills them from their records.

ALTER TABLE ledger_generations ADD COLUMN user_id TEXT;
ALTER TABLE ledger_generations ADD COLUMN model TEXT;
ALTER TABLE ledger_generations ADD COLUMN requested_model TEXT;
ALTER TABLE ledger_generations ADD COLUMN provider_name TEXT;
ALTER TABLE ledger_generations ADD COLUMN session_id TEXT;
-- The title of the application, or else its address.
ALTER TABLE ledger_generations ADD COLUMN app TEXT;
ALTER TABLE ledger_generations ADD COLUMN finish_reason TEXT;
ALTER TABLE ledger_generations ADD COLUMN streamed BOOLEAN;
-- Milliseconds.
ALTER TABLE ledger_generations ADD COLUMN latency BIGINT;
-- Why attempts failed, in their order, with commas; null: none failed.
ALTER TABLE ledger_generations ADD COLUMN failures TEXT;
-- The guardrails and filters that acted, with commas; null: none.
ALTER TABLE ledger_generations ADD COLUMN guardrails TEXT;

CREATE INDEX ledger_generations_unlisted ON ledger_generations (id) WHERE model IS NULL;
-- The columns after the id serve filters that have no index of their own: they are read from this index alone.
CREATE INDEX ledger_generations_time ON ledger_generations
  (organization_id, created_at, id, cost, latency, provider_name, requested_model, finish_reason, streamed, outcome);
CREATE INDEX ledger_generations_key ON ledger_generations (organization_id, key_hash, created_at, id);
CREATE INDEX ledger_generations_workspace ON ledger_generations (organization_id, workspace_id, created_at, id);
CREATE INDEX ledger_generations_model ON ledger_generations (organization_id, model, created_at, id);
CREATE INDEX ledger_generations_user ON ledger_generations (organization_id, user_id, created_at, id)
  WHERE user_id IS NOT NULL;
CREATE INDEX ledger_generations_app ON ledger_generations (organization_id, app, created_at, id) WHERE app IS NOT NULL;
CREATE INDEX ledger_generations_session ON ledger_generations
  (organization_id, session_id, created_at, id, user_id, cost, model, outcome) WHERE session_id IS NOT NULL;
CREATE INDEX ledger_generations_sessions ON ledger_generations (organization_id, created_at, id, session_id, user_id)
  WHERE session_id IS NOT NULL;
CREATE INDEX ledger_generations_incomplete ON ledger_generations (organization_id, created_at, id, outcome, cost)
  WHERE outcome <> 'completed';
CREATE INDEX ledger_generations_failures ON ledger_generations (organization_id, created_at, id, failures, outcome, cost)
  WHERE failures IS NOT NULL;
CREATE INDEX ledger_generations_guardrails ON ledger_generations (organization_id, created_at, id, cost)
  WHERE guardrails IS NOT NULL;
