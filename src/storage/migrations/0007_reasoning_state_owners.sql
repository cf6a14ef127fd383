-- Whose a kept turn is, as a keyed hash of the workspace, so that it goes with the workspace; and how long its text is, so that
-- the table is bounded by it.

ALTER TABLE reasoning_states ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE reasoning_states ADD COLUMN chars BIGINT NOT NULL DEFAULT 0;
CREATE INDEX reasoning_states_owner ON reasoning_states (owner);
CREATE INDEX reasoning_states_chars ON reasoning_states (expires_at, chars);
DROP INDEX reasoning_states_expiry;
