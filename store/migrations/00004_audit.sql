-- What administrators did. Nothing is ever changed or removed; each entry has the hash of the one before.

CREATE TABLE audit (
	tenant TEXT NOT NULL,
	seq    BIGINT NOT NULL, -- from 1, without gaps
	action TEXT NOT NULL,
	object TEXT NOT NULL, -- the id of what it was done to; empty: it has none
	entry  TEXT NOT NULL, -- the truth
	PRIMARY KEY (tenant, seq)
){{.Clustered}};
CREATE INDEX audit_by_action ON audit (tenant, action, seq);
