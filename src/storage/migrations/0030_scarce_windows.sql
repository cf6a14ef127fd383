-- A node keeps money that it does not use for minutes, unless it is scarce. Which windows these are is marked here, so that a node
-- with many leases does not read all of its windows several times a second.

-- 1: a node waits for money of this window, little is free compared with what is leased, or the limit is exceeded or was changed.
ALTER TABLE ledger_windows ADD COLUMN scarce BIGINT NOT NULL DEFAULT 0;
UPDATE ledger_windows SET scarce = 1 WHERE leased > 0;
CREATE INDEX ledger_windows_scarce ON ledger_windows (budget_id, window_start) WHERE scarce = 1;

-- ledger_nodes.charges_leases, 2: the node's program also writes and reads these marks.
