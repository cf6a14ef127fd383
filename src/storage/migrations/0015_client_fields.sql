-- What clients of the public service read and write.

-- The end user of its owner's that a key is for: told, and nothing else.
ALTER TABLE api_keys ADD COLUMN external_user TEXT;

-- When the last call of the day was admitted; null for days that were counted before this was kept.
ALTER TABLE usage_days ADD COLUMN last_used_at TEXT;

-- Null: as enforce_zdr_other says, which held for models of xAI before.
ALTER TABLE guardrails ADD COLUMN enforce_zdr_xai BOOLEAN;
-- Usage of own accounts counts toward its limit, also where its workspace does not say so.
ALTER TABLE guardrails ADD COLUMN include_byok_in_budgets BOOLEAN NOT NULL DEFAULT FALSE;

-- Whether the account keeps nothing, as its owner says; null: as is known of its provider.
ALTER TABLE byok_credentials ADD COLUMN declared_zdr BOOLEAN;
-- Told, and nothing else.
ALTER TABLE byok_credentials ADD COLUMN declared_region TEXT CHECK (declared_region IN ('global', 'europe', 'us'));
-- No model goes to the gateway's own account at this provider.
ALTER TABLE byok_credentials ADD COLUMN is_byok_only BOOLEAN NOT NULL DEFAULT FALSE;
