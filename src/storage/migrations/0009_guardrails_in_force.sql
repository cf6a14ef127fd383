-- Filters that hold for answers, and redaction that clients do not see; and the guardrail that holds for all of a workspace.

ALTER TABLE guardrails ADD COLUMN content_filter_output BOOLEAN;
ALTER TABLE guardrails ADD COLUMN content_filter_reversible BOOLEAN;
ALTER TABLE workspaces ADD COLUMN default_guardrail_id TEXT;
CREATE INDEX workspaces_default_guardrail ON workspaces (default_guardrail_id);
