-- Rotated keys. hash stays the name of the key. secret_hash: the SHA-256 of the current secret; null: the key was never rotated, and hash is
-- that of its secret. previous_*: of the secret before it, which is valid until previous_secret_expires_at (null: it was ended); kept after that,
-- so that its holder gets a clear refusal.
ALTER TABLE api_keys ADD COLUMN secret_hash TEXT;
ALTER TABLE api_keys ADD COLUMN previous_secret_hash TEXT;
ALTER TABLE api_keys ADD COLUMN previous_label TEXT;
ALTER TABLE api_keys ADD COLUMN previous_secret_expires_at TEXT;
ALTER TABLE api_keys ADD COLUMN rotated_at TEXT;
CREATE UNIQUE INDEX api_keys_secret ON api_keys (secret_hash) WHERE secret_hash IS NOT NULL;
CREATE UNIQUE INDEX api_keys_previous_secret ON api_keys (previous_secret_hash) WHERE previous_secret_hash IS NOT NULL;
