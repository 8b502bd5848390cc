-- Administrative acts. Rows are never changed or removed; each entry has the hash of the one before.

CREATE TABLE audit (
	tenant TEXT NOT NULL,
	seq    BIGINT NOT NULL, -- from 1, without gaps
	action TEXT NOT NULL,
	object TEXT NOT NULL, -- the id of the object acted on; empty if it has none
	entry  TEXT NOT NULL, -- from which the other columns are derived
	PRIMARY KEY (tenant, seq)
){{.Clustered}};
CREATE INDEX audit_by_action ON audit (tenant, action, seq);
