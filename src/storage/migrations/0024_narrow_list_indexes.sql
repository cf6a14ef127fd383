-- Indexes that lists of generations follow: shorter entries, since each batch of outcomes writes all of them. A key, a workspace and a user
-- name their organization, and generations of one moment are sorted by their ids when they are read.
DROP INDEX ledger_generations_key;
DROP INDEX ledger_generations_workspace;
DROP INDEX ledger_generations_user;
CREATE INDEX ledger_generations_key ON ledger_generations (key_hash, created_at);
CREATE INDEX ledger_generations_workspace ON ledger_generations (workspace_id, created_at);
CREATE INDEX ledger_generations_user ON ledger_generations (user_id, created_at) WHERE user_id IS NOT NULL;
