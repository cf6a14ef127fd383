-- Responses that their requests asked to be stored, each with the conversation before it: compressed and encrypted. They go
-- with their workspace, and when they expire.

CREATE TABLE stored_responses (
  id TEXT PRIMARY KEY NOT NULL,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  sealed TEXT NOT NULL,
  chars BIGINT NOT NULL,
  expires_at TEXT NOT NULL
);
CREATE INDEX stored_responses_workspace ON stored_responses (workspace_id);
CREATE INDEX stored_responses_expiry ON stored_responses (expires_at, chars);
