-- What retention settings have deleted, and what the ledger keeps of it.

-- Calls of the node that were admitted before this moment (milliseconds since 1970) may be deleted: a batch with such a call is compared
-- with ledger_deleted_ids before it is counted. Null: none is deleted.
ALTER TABLE ledger_nodes ADD COLUMN deleted_to BIGINT;

-- The ids of deleted generations, so that a batch that is sent again counts none of them twice. ids: a JSON list, of one node and one
-- hour of admission (counted from 1970), for each portion that was deleted.
CREATE TABLE ledger_deleted_ids (
  node_id TEXT NOT NULL,
  hour BIGINT NOT NULL,
  first_id TEXT NOT NULL,
  ids TEXT NOT NULL,
  PRIMARY KEY (node_id, hour, first_id)
);

-- The sums of deleted generations, which `ledger verify` adds to those of the stored ones. corrections: by operators, of the cost.
CREATE TABLE ledger_deleted_days (
  series BIGINT NOT NULL,
  day TEXT NOT NULL,
  key_hash TEXT NOT NULL,
  cost BIGINT NOT NULL,
  requests BIGINT NOT NULL,
  corrections BIGINT NOT NULL,
  PRIMARY KEY (series, day, key_hash)
);

-- What deleted generations had charged to a window. Deleted with the window.
CREATE TABLE ledger_deleted_charges (
  budget_id TEXT NOT NULL,
  window_start TEXT NOT NULL,
  amount BIGINT NOT NULL,
  PRIMARY KEY (budget_id, window_start)
);

-- One row for each kind of deleted rows. owner: the process that sweeps, until owner_until (milliseconds since 1970). deleted: rows so far.
-- deleted_before: everything older is deleted, or being deleted. ended_at: the end of the last sweep;
-- null: it is not complete.
CREATE TABLE retention_sweeps (
  kind TEXT PRIMARY KEY NOT NULL CHECK (kind IN ('generations', 'audit', 'closed_windows')),
  owner TEXT NOT NULL,
  owner_until BIGINT NOT NULL,
  deleted BIGINT NOT NULL,
  deleted_before TEXT,
  ended_at TEXT
);
