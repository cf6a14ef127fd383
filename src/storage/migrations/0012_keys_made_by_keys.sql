-- Who made a key. parent_hash: the API key that its authorization code was made with; it ends with that key. made_by: null
-- for keys of administrators; 'session' for keys that a member approved on a page; 'unknown' for keys that applications got
-- before this was recorded.
ALTER TABLE api_keys ADD COLUMN parent_hash TEXT REFERENCES api_keys (hash);
ALTER TABLE api_keys ADD COLUMN made_by TEXT CHECK (made_by IN ('key', 'session', 'unknown'));
CREATE INDEX api_keys_parent ON api_keys (parent_hash);
CREATE INDEX api_keys_creator ON api_keys (organization_id, creator_user_id);

UPDATE api_keys SET made_by = 'unknown' WHERE hash IN (
  SELECT resource_id FROM audit_events WHERE resource_type = 'api_key' AND action = 'create' AND actor = 'callback');

-- Each key with each of its ancestors. The rows stay when keys are deleted, as what they spent does: limits that come into
-- force later count it.
CREATE TABLE api_key_ancestors (
  key_hash TEXT NOT NULL,
  ancestor_hash TEXT NOT NULL,
  PRIMARY KEY (key_hash, ancestor_hash)
);

CREATE INDEX api_key_ancestors_descendants ON api_key_ancestors (ancestor_hash);

-- 'key': an API key made the code, so that it is the parent of the new key; 'session': a signed-in member approved it.
ALTER TABLE authorization_codes ADD COLUMN made_by TEXT NOT NULL DEFAULT 'key' CHECK (made_by IN ('key', 'session'));
