-- What was asked and answered in calls whose workspace keeps that: compressed and encrypted. It goes with its workspace, and
-- when it expires.

CREATE TABLE logged_contents (
  id TEXT PRIMARY KEY NOT NULL,
  organization_id TEXT NOT NULL,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  key_hash TEXT NOT NULL,
  user_id TEXT,
  created_at TEXT NOT NULL,
  sealed TEXT NOT NULL,
  chars BIGINT NOT NULL,
  expires_at TEXT NOT NULL
);
CREATE INDEX logged_contents_workspace ON logged_contents (workspace_id, created_at, id, chars);
CREATE INDEX logged_contents_expiry ON logged_contents (expires_at, chars);
