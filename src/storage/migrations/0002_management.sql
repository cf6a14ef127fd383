-- What an administrator keeps. `seq` is given out by a row of counters that stays locked until its transaction ends, so
-- its order is the order of the commits: a list that is paged by it never shows a row before one that was already told.
-- `version` rises with every change of a record; it is what If-Match is compared with.

ALTER TABLE users ADD COLUMN first_name TEXT;
ALTER TABLE users ADD COLUMN last_name TEXT;
-- Who the user is at the OpenID Connect issuer.
ALTER TABLE users ADD COLUMN issuer TEXT;
ALTER TABLE users ADD COLUMN subject TEXT;
CREATE UNIQUE INDEX users_identity ON users (issuer, subject);
CREATE UNIQUE INDEX users_email ON users (email);

ALTER TABLE organization_members ADD COLUMN seq BIGINT NOT NULL DEFAULT 0;
CREATE INDEX organization_members_order ON organization_members (organization_id, seq);

ALTER TABLE workspaces ADD COLUMN seq BIGINT NOT NULL DEFAULT 0;
ALTER TABLE workspaces ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
ALTER TABLE workspaces ADD COLUMN include_byok_in_budgets BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX workspaces_order ON workspaces (organization_id, seq);

ALTER TABLE workspace_members ADD COLUMN seq BIGINT NOT NULL DEFAULT 0;
CREATE INDEX workspace_members_order ON workspace_members (workspace_id, seq);

ALTER TABLE api_keys ADD COLUMN version BIGINT NOT NULL DEFAULT 1;

CREATE TABLE workspace_budgets (
  id TEXT PRIMARY KEY NOT NULL,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  reset_interval TEXT NOT NULL CHECK (reset_interval IN ('daily', 'weekly', 'monthly', 'lifetime')),
  limit_nano BIGINT NOT NULL CHECK (limit_nano > 0),
  created_at TEXT NOT NULL,
  updated_at TEXT,
  UNIQUE (workspace_id, reset_interval)
);

CREATE TABLE guardrails (
  id TEXT PRIMARY KEY NOT NULL,
  seq BIGINT NOT NULL,
  version BIGINT NOT NULL,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  name TEXT NOT NULL,
  description TEXT,
  allowed_models JSON,
  ignored_models JSON,
  allowed_providers JSON,
  ignored_providers JSON,
  limit_nano BIGINT CHECK (limit_nano >= 0),
  reset_interval TEXT CHECK (reset_interval IN ('daily', 'weekly', 'monthly')),
  enforce_zdr BOOLEAN,
  enforce_zdr_anthropic BOOLEAN,
  enforce_zdr_openai BOOLEAN,
  enforce_zdr_google BOOLEAN,
  enforce_zdr_other BOOLEAN,
  content_filter_builtins JSON,
  content_filters JSON,
  created_at TEXT NOT NULL,
  updated_at TEXT
);

CREATE INDEX guardrails_order ON guardrails (workspace_id, seq);

-- A key, and a member, has at most one guardrail of its own.
CREATE TABLE guardrail_key_assignments (
  id TEXT PRIMARY KEY NOT NULL,
  seq BIGINT NOT NULL,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  guardrail_id TEXT NOT NULL REFERENCES guardrails (id),
  key_hash TEXT NOT NULL UNIQUE REFERENCES api_keys (hash),
  assigned_by TEXT,
  created_at TEXT NOT NULL
);

CREATE INDEX guardrail_key_assignments_order ON guardrail_key_assignments (organization_id, seq);
CREATE INDEX guardrail_key_assignments_guardrail ON guardrail_key_assignments (guardrail_id, seq);

CREATE TABLE guardrail_member_assignments (
  id TEXT PRIMARY KEY NOT NULL,
  seq BIGINT NOT NULL,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  guardrail_id TEXT NOT NULL REFERENCES guardrails (id),
  user_id TEXT NOT NULL REFERENCES users (id),
  assigned_by TEXT,
  created_at TEXT NOT NULL,
  UNIQUE (organization_id, user_id)
);

CREATE INDEX guardrail_member_assignments_order ON guardrail_member_assignments (organization_id, seq);
CREATE INDEX guardrail_member_assignments_guardrail ON guardrail_member_assignments (guardrail_id, seq);

-- Applications that asked for keys, by the origin of their callback.
CREATE TABLE apps (
  id BIGINT PRIMARY KEY NOT NULL,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  origin TEXT NOT NULL,
  created_at TEXT NOT NULL,
  UNIQUE (organization_id, origin)
);

-- The code itself is never stored: code_hash is its SHA-256.
CREATE TABLE authorization_codes (
  code_hash TEXT PRIMARY KEY NOT NULL,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  -- A code dies with its workspace.
  workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  user_id TEXT,
  -- A code dies with the key that it was asked for with; null: with none that is stored.
  asker_key_hash TEXT,
  -- null, both: shown to a person in place of being sent to an application.
  app_id BIGINT REFERENCES apps (id),
  callback_url TEXT,
  code_challenge TEXT,
  code_challenge_method TEXT CHECK (code_challenge_method IN ('S256', 'plain')),
  key_label TEXT NOT NULL,
  limit_nano BIGINT CHECK (limit_nano >= 0),
  limit_reset TEXT CHECK (limit_reset IN ('daily', 'weekly', 'monthly')),
  key_expires_at TEXT,
  failures BIGINT NOT NULL,
  created_at TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  used_at TEXT
);

CREATE INDEX authorization_codes_expiry ON authorization_codes (expires_at);
CREATE INDEX authorization_codes_user ON authorization_codes (organization_id, user_id);
-- Of two codes with one challenge that wait in one organization, the second is refused.
CREATE UNIQUE INDEX authorization_codes_waiting ON authorization_codes (organization_id, code_challenge) WHERE used_at IS NULL;

-- Sign-ins to pages. The cookie's secret is never stored: token_hash is its SHA-256, previous_hash that of the secret
-- before the last rotation, which requests already under way still carry.
CREATE TABLE sessions (
  id TEXT PRIMARY KEY NOT NULL,
  token_hash TEXT NOT NULL UNIQUE,
  previous_hash TEXT,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  user_id TEXT NOT NULL REFERENCES users (id),
  -- What it was signed in with. A session ends with its key.
  credential TEXT NOT NULL,
  created_at TEXT NOT NULL,
  rotated_at TEXT NOT NULL,
  expires_at TEXT NOT NULL
);

CREATE INDEX sessions_previous ON sessions (previous_hash);
CREATE INDEX sessions_expiry ON sessions (expires_at);
CREATE INDEX sessions_user ON sessions (user_id);

-- Credentials of an organization's own accounts at providers. sealed: encrypted with GATEWAY_SECRET.
CREATE TABLE byok_credentials (
  id TEXT PRIMARY KEY NOT NULL,
  seq BIGINT NOT NULL,
  version BIGINT NOT NULL,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  provider TEXT NOT NULL,
  label TEXT NOT NULL,
  sealed TEXT NOT NULL,
  name TEXT,
  disabled BOOLEAN NOT NULL,
  is_fallback BOOLEAN NOT NULL,
  sort_order BIGINT NOT NULL,
  allowed_models JSON,
  allowed_api_key_hashes JSON,
  allowed_user_ids JSON,
  created_at TEXT NOT NULL,
  updated_at TEXT
);

CREATE INDEX byok_credentials_order ON byok_credentials (workspace_id, seq);

CREATE TABLE audit_events (
  seq BIGINT PRIMARY KEY NOT NULL,
  id TEXT NOT NULL UNIQUE,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  created_at TEXT NOT NULL,
  -- The key that acted; null for the environment's management key, a command or a person on a page.
  actor_key_hash TEXT,
  actor_user_id TEXT,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  resource_type TEXT NOT NULL,
  resource_id TEXT NOT NULL,
  state_before JSON,
  state_after JSON,
  request_id TEXT
);

CREATE INDEX audit_events_order ON audit_events (organization_id, seq);
CREATE INDEX audit_events_resource ON audit_events (resource_type, resource_id);

-- What activity is read from: a day of a key, a model and an endpoint. Raised with the generations it counts.
CREATE TABLE activity_days (
  organization_id TEXT NOT NULL,
  workspace_id TEXT NOT NULL,
  key_hash TEXT NOT NULL,
  user_id TEXT NOT NULL,
  day TEXT NOT NULL,
  model TEXT NOT NULL,
  model_permaslug TEXT NOT NULL,
  endpoint_id TEXT NOT NULL,
  provider_name TEXT NOT NULL,
  usage_nano BIGINT NOT NULL,
  byok_usage_nano BIGINT NOT NULL,
  requests BIGINT NOT NULL,
  prompt_tokens BIGINT NOT NULL,
  completion_tokens BIGINT NOT NULL,
  reasoning_tokens BIGINT NOT NULL,
  PRIMARY KEY (key_hash, day, model, endpoint_id)
);

CREATE INDEX activity_days_day ON activity_days (organization_id, day);
