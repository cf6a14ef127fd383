-- The ledger's money: what may be spent, what was, and what each node has set aside of it.

-- A limit in force; null: no longer. A row is never deleted: what was spent under it stays explained.
-- subject: what it limits, `key:<hash>`, `user:<organization>:<user>`, `workspace:<id>` or `organization:<id>`.
CREATE TABLE ledger_budgets (
  id TEXT PRIMARY KEY NOT NULL,
  scope TEXT NOT NULL CHECK (scope IN ('key', 'guardrail', 'workspace', 'organization')),
  subject TEXT NOT NULL,
  guardrail_id TEXT,
  label TEXT NOT NULL,
  reset_interval TEXT NOT NULL CHECK (reset_interval IN ('daily', 'weekly', 'monthly', 'never')),
  limit_nano BIGINT CHECK (limit_nano >= 0),
  include_byok BOOLEAN NOT NULL,
  version BIGINT NOT NULL
);

CREATE INDEX ledger_budgets_subject ON ledger_budgets (subject);
CREATE INDEX ledger_budgets_guardrail ON ledger_budgets (guardrail_id);

-- One budget in one calendar interval. window_start: its first day, '' where there is none. opening: what the subject had
-- spent in it before the budget was made. granted and free: what the last statement answered. No reference to the budget:
-- what was spent is counted also by a store that was set back to before the budget was made.
CREATE TABLE ledger_windows (
  budget_id TEXT NOT NULL,
  window_start TEXT NOT NULL,
  opening BIGINT NOT NULL DEFAULT 0,
  spent BIGINT NOT NULL DEFAULT 0,
  leased BIGINT NOT NULL DEFAULT 0 CHECK (leased >= 0),
  wanted BIGINT NOT NULL DEFAULT 0,
  wanted_by TEXT NOT NULL DEFAULT '',
  wanted_at BIGINT NOT NULL DEFAULT 0,
  granted BIGINT NOT NULL DEFAULT 0,
  free BIGINT,
  PRIMARY KEY (budget_id, window_start)
);

-- What a node has set aside. Time never frees it: it is returned, settled, or released by an operator.
CREATE TABLE ledger_leases (
  node_id TEXT NOT NULL,
  budget_id TEXT NOT NULL,
  window_start TEXT NOT NULL,
  amount BIGINT NOT NULL CHECK (amount >= 0),
  PRIMARY KEY (node_id, budget_id, window_start)
);

-- Corrections by an operator, each with its reason.
CREATE TABLE ledger_adjustments (
  id TEXT PRIMARY KEY NOT NULL,
  generation_id TEXT,
  budget_id TEXT NOT NULL,
  window_start TEXT NOT NULL,
  amount BIGINT NOT NULL,
  reason TEXT NOT NULL,
  created_at TEXT NOT NULL
);

CREATE INDEX ledger_adjustments_window ON ledger_adjustments (budget_id, window_start);

-- Credits given to an organization; with none of them it may spend without bound.
CREATE TABLE credit_grants (
  id TEXT PRIMARY KEY NOT NULL,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  amount_nano BIGINT NOT NULL,
  reason TEXT NOT NULL,
  created_at TEXT NOT NULL
);

CREATE INDEX credit_grants_organization ON credit_grants (organization_id);

-- How strictly a key's budgets are kept; null: as the gateway's settings say.
ALTER TABLE api_keys ADD COLUMN budget_mode TEXT CHECK (budget_mode IN ('strict', 'soft'));

-- Limits that were set before: none was kept until now. A limit without end counts what was spent under it; the days, weeks
-- and months that run begin with this.
INSERT INTO ledger_budgets (id, scope, subject, guardrail_id, label, reset_interval, limit_nano, include_byok, version)
SELECT 'key:' || hash || ':' || COALESCE(limit_reset, 'never'), 'key', 'key:' || hash, NULL, 'the limit of this API key',
  COALESCE(limit_reset, 'never'), limit_nano, include_byok_in_limit, 1
FROM api_keys WHERE limit_nano IS NOT NULL;

INSERT INTO ledger_windows (budget_id, window_start, opening, spent)
SELECT b.id, '', SUM(u.usage_nano + CASE WHEN b.include_byok THEN u.byok_usage_nano ELSE 0 END),
  SUM(u.usage_nano + CASE WHEN b.include_byok THEN u.byok_usage_nano ELSE 0 END)
FROM ledger_budgets b JOIN usage_days u ON u.scope = 'key' AND b.subject = 'key:' || u.scope_id
WHERE b.reset_interval = 'never'
GROUP BY b.id;

-- Whether a call that this credential could not serve may go on to the gateway's own accounts.
ALTER TABLE byok_credentials ADD COLUMN allow_shared_fallback BOOLEAN NOT NULL DEFAULT FALSE;
