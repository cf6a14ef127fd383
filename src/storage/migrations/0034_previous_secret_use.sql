-- When a request last used the previous secret of a rotated key; null: none did since the rotation. Nodes write it at most every half minute.
ALTER TABLE api_keys ADD COLUMN previous_secret_used_at TEXT;

-- Generations with an estimated part are listed by id: with an index by the amount, a page of them read all generations in the order of ids.
CREATE INDEX ledger_generations_estimated_id ON ledger_generations (id) WHERE estimated > 0;
DROP INDEX ledger_generations_estimated;
