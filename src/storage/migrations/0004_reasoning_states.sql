-- What clients of the chat API drop of a turn that called tools: its opaque reasoning and the order of its blocks,
-- encrypted, under a keyed hash of the workspace and the call. Written behind the answers, in batches; gone when it expires.

CREATE TABLE reasoning_states (
  id TEXT PRIMARY KEY NOT NULL,
  sealed TEXT NOT NULL,
  expires_at TEXT NOT NULL
);
CREATE INDEX reasoning_states_expiry ON reasoning_states (expires_at);
