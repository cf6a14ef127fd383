-- When a request last used the previous secret of a rotated key; null: none did since the rotation. Nodes write it at most every half minute.
ALTER TABLE api_keys ADD COLUMN previous_secret_used_at TEXT;
