-- The subset of SQL that SQLite and PostgreSQL share. A statement ends with a semicolon at the end of a line.

CREATE TABLE organizations (
  id TEXT PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  created_at TEXT NOT NULL
);

CREATE TABLE users (
  id TEXT PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  email TEXT,
  created_at TEXT NOT NULL
);

CREATE TABLE organization_members (
  id TEXT PRIMARY KEY NOT NULL,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  user_id TEXT NOT NULL REFERENCES users (id),
  role TEXT NOT NULL CHECK (role IN ('admin', 'member')),
  created_at TEXT NOT NULL,
  UNIQUE (organization_id, user_id)
);

CREATE TABLE workspaces (
  id TEXT PRIMARY KEY NOT NULL,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  is_default BOOLEAN NOT NULL,
  name TEXT NOT NULL,
  slug TEXT NOT NULL,
  description TEXT,
  created_at TEXT NOT NULL,
  created_by TEXT,
  updated_at TEXT,
  default_image_model TEXT,
  default_text_model TEXT,
  default_provider_sort TEXT,
  io_logging_api_key_ids JSON,
  io_logging_sampling_rate_bp BIGINT NOT NULL CHECK (io_logging_sampling_rate_bp BETWEEN 1 AND 10000),
  is_data_discount_logging_enabled BOOLEAN NOT NULL,
  is_observability_broadcast_enabled BOOLEAN NOT NULL,
  is_observability_io_logging_enabled BOOLEAN NOT NULL,
  UNIQUE (organization_id, slug)
);

CREATE TABLE workspace_members (
  id TEXT PRIMARY KEY NOT NULL,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  user_id TEXT NOT NULL REFERENCES users (id),
  role TEXT NOT NULL CHECK (role IN ('admin', 'member')),
  created_at TEXT NOT NULL,
  UNIQUE (workspace_id, user_id)
);

-- The secret is never stored: hash is its SHA-256, which is also the key's name in paths.
CREATE TABLE api_keys (
  id BIGINT PRIMARY KEY NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  creator_user_id TEXT,
  name TEXT NOT NULL,
  label TEXT NOT NULL,
  is_management BOOLEAN NOT NULL,
  disabled BOOLEAN NOT NULL,
  limit_nano BIGINT CHECK (limit_nano >= 0),
  limit_reset TEXT CHECK (limit_reset IN ('daily', 'weekly', 'monthly')),
  include_byok_in_limit BOOLEAN NOT NULL,
  expires_at TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT
);

CREATE INDEX api_keys_workspace ON api_keys (workspace_id);

CREATE TABLE counters (
  name TEXT PRIMARY KEY NOT NULL,
  value BIGINT NOT NULL
);

-- Raised in the transaction that inserts the generations it counts.
CREATE TABLE usage_days (
  scope TEXT NOT NULL,
  scope_id TEXT NOT NULL,
  day TEXT NOT NULL,
  usage_nano BIGINT NOT NULL,
  byok_usage_nano BIGINT NOT NULL,
  requests BIGINT NOT NULL,
  PRIMARY KEY (scope, scope_id, day)
);

CREATE TABLE ledger_nodes (
  id TEXT PRIMARY KEY NOT NULL,
  epoch BIGINT NOT NULL,
  instance TEXT NOT NULL,
  batch BIGINT NOT NULL,
  seen_at BIGINT NOT NULL
);

CREATE TABLE ledger_generations (
  id TEXT PRIMARY KEY NOT NULL,
  node_id TEXT NOT NULL,
  organization_id TEXT NOT NULL,
  workspace_id TEXT NOT NULL,
  key_hash TEXT NOT NULL,
  outcome TEXT NOT NULL,
  cost BIGINT NOT NULL,
  cover BIGINT NOT NULL,
  charges TEXT NOT NULL,
  record TEXT NOT NULL,
  admitted_at BIGINT NOT NULL,
  created_at TEXT NOT NULL
);
