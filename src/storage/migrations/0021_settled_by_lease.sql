-- Charges that a lease covers do not change what is free of their window. They are counted in the node's own row, and reach the
-- row of the window when the node next requests or returns money: nodes that share a budget do not wait for each other.

-- Charged since then: already taken from `amount`, still part of the window's `leased`, not yet part of its `spent`.
ALTER TABLE ledger_leases ADD COLUMN settled BIGINT NOT NULL DEFAULT 0 CHECK (settled >= 0);
CREATE INDEX ledger_leases_window ON ledger_leases (budget_id, window_start);

-- The part of `leased` that other nodes had settled when the row was last raised.
ALTER TABLE ledger_windows ADD COLUMN settled_elsewhere BIGINT NOT NULL DEFAULT 0;

-- 1: the node's program reads what is settled of leases. While a node with 0 runs, no charge is counted in a lease alone.
ALTER TABLE ledger_nodes ADD COLUMN charges_leases BIGINT NOT NULL DEFAULT 0;
