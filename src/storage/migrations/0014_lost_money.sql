-- Money of nodes that are gone, and of calls whose end nobody knows.

-- A lease that is used up is no row any more. The index serves what every node with leases asks four times a second.
DELETE FROM ledger_leases WHERE amount = 0;
CREATE INDEX ledger_leases_held ON ledger_leases (node_id, budget_id, window_start) WHERE amount > 0;

-- What a lost node had set aside, booked as spent in its window. It is a lease again when the node comes back.
CREATE TABLE ledger_lost_leases (
  node_id TEXT NOT NULL,
  budget_id TEXT NOT NULL,
  window_start TEXT NOT NULL,
  amount BIGINT NOT NULL CHECK (amount > 0),
  booked_at TEXT NOT NULL,
  PRIMARY KEY (node_id, budget_id, window_start)
);

-- What of a generation's cost is an estimate because nobody knows how an attempt ended.
ALTER TABLE ledger_generations ADD COLUMN estimated BIGINT NOT NULL DEFAULT 0;
CREATE INDEX ledger_generations_estimated ON ledger_generations (estimated) WHERE estimated > 0;
