-- An authorization code ends with the secret of the key that made it, or that opened the session which approved it. Null: of an earlier version, or of no key.
ALTER TABLE authorization_codes ADD COLUMN asker_secret_hash TEXT;
