-- Publishing what was answered, and checking what was cited. Times are microseconds since 1970; tenants, runs, ids and addresses
-- are as they are looked up by.

-- Random bytes that are made once.
CREATE TABLE secrets (
	name  TEXT NOT NULL PRIMARY KEY,
	value TEXT NOT NULL -- base64url
);

-- The manifests that are, or are to be, published: a row for each version of that of an answer, or of a run's final one.
CREATE TABLE publications (
	pub        TEXT NOT NULL, -- the public id of the run; empty: of somebody who has ids of their own
	answer_id  TEXT NOT NULL, -- empty: the run's final one
	revision   BIGINT NOT NULL, -- from 1
	tenant     TEXT NOT NULL,
	run        TEXT NOT NULL, -- empty: the answer is in none
	path       TEXT NOT NULL UNIQUE, -- where it is served
	supersedes TEXT NOT NULL, -- the path of the revision before it; empty: none
	state      TEXT NOT NULL, -- waiting (for the run's end), pending, built, failed or expired
	due        BIGINT NOT NULL, -- waiting: when something of the run was published last; pending: when it is to be built, or somebody else may try; built: since when
	attempts   BIGINT NOT NULL,
	changes    BIGINT NOT NULL, -- how often what it is made of has changed
	salt       TEXT NOT NULL, -- base64url; empty: its answer was deleted
	digest     TEXT NOT NULL, -- of the body
	signed     TEXT NOT NULL, -- manifest.Signed
	error      TEXT NOT NULL, -- why it could not be built the last time
	PRIMARY KEY (pub, answer_id, revision)
){{.Clustered}};
CREATE INDEX publications_due ON publications (state, due);
CREATE INDEX publications_by_answer ON publications (tenant, answer_id);
CREATE INDEX publications_by_run ON publications (tenant, run);
CREATE INDEX publications_by_digest ON publications (tenant, digest) WHERE digest <> '';

-- What was read of sources: the octets, once.
CREATE TABLE copies (
	hash   TEXT NOT NULL PRIMARY KEY,
	coding TEXT NOT NULL, -- zstd, or empty
	size   BIGINT NOT NULL, -- decoded
	seen   BIGINT NOT NULL, -- when they were read last: retention counts from it
	octets {{.Bytes}} NOT NULL
);
CREATE INDEX copies_by_age ON copies (seen);

-- The versions of sources: a row whenever something else was read.
CREATE TABLE versions (
	n         {{.Number}} PRIMARY KEY, -- of the numbers of calls.n
	tenant    TEXT NOT NULL,
	url       TEXT NOT NULL,
	hash      TEXT NOT NULL, -- of the octets; copies need not have them
	media     TEXT NOT NULL,
	last_seen BIGINT NOT NULL, -- when it was still so
	version   TEXT NOT NULL -- the truth
);
CREATE INDEX versions_by_url ON versions (tenant, url, n);
CREATE INDEX versions_by_hash ON versions (hash, tenant);
CREATE INDEX versions_by_age ON versions (last_seen, n);

-- What was cited: a row for each citation, claim and source of a manifest.
CREATE TABLE pins (
	n         {{.Number}} PRIMARY KEY, -- of the numbers of calls.n
	tenant    TEXT NOT NULL,
	url       TEXT NOT NULL,
	answer_id TEXT NOT NULL,
	run       TEXT NOT NULL,
	citation  TEXT NOT NULL,
	claim     TEXT NOT NULL,
	source    TEXT NOT NULL,
	path      TEXT NOT NULL, -- of the manifest; empty: it is in none
	rank      BIGINT NOT NULL, -- of status: see severity; 0: it was not checked
	status    TEXT NOT NULL,
	checked   BIGINT NOT NULL,
	detail    TEXT NOT NULL, -- JSON; empty: none
	pin       TEXT NOT NULL, -- the rest
	UNIQUE (tenant, answer_id, path, citation, claim, source)
);
CREATE INDEX pins_by_url ON pins (tenant, url);
CREATE INDEX pins_by_path ON pins (tenant, path) WHERE path <> '';
CREATE INDEX pins_by_answer ON pins (tenant, answer_id, rank) WHERE rank > 0; -- else SQLite takes one of the next for it, and reads all of a tenant's
CREATE INDEX pins_by_rank ON pins (tenant, rank, answer_id) WHERE rank > 0;
CREATE INDEX pins_by_status ON pins (tenant, status, answer_id) WHERE rank > 0;

-- Which sources are to be read again, and when.
CREATE TABLE rechecks (
	tenant   TEXT NOT NULL,
	url      TEXT NOT NULL,
	address  TEXT NOT NULL, -- the whole of it
	due      BIGINT NOT NULL, -- or when somebody else may try
	checked  BIGINT NOT NULL, -- 0: never
	failures BIGINT NOT NULL, -- in a row
	PRIMARY KEY (tenant, url)
){{.Clustered}};
CREATE INDEX rechecks_due ON rechecks (due);

-- How far something has come.
CREATE TABLE marks (
	name  TEXT NOT NULL PRIMARY KEY,
	value BIGINT NOT NULL
);

-- Incidents. Nothing is ever changed or removed; each has the hash of the one before.
CREATE TABLE incidents (
	tenant    TEXT NOT NULL,
	seq       BIGINT NOT NULL, -- from 1, without gaps
	key       TEXT NOT NULL, -- what it is about, hashed
	manifest  TEXT NOT NULL, -- its digest; empty: it could not be read
	source    TEXT NOT NULL,
	status    TEXT NOT NULL,
	answer_id TEXT NOT NULL, -- empty: the manifest is not ours
	incident  TEXT NOT NULL, -- the truth
	PRIMARY KEY (tenant, seq),
	UNIQUE (tenant, key)
){{.Clustered}};
CREATE INDEX incidents_by_manifest ON incidents (tenant, manifest, seq) WHERE manifest <> '';
CREATE INDEX incidents_by_source ON incidents (tenant, source, seq);
CREATE INDEX incidents_by_answer ON incidents (tenant, answer_id, seq) WHERE answer_id <> '';

-- The transparency log: leaves, the hashes of the tree in the order in which they come to be, and the last checkpoint.
CREATE TABLE log_leaves (
	n    {{.Number}} PRIMARY KEY, -- from 0
	leaf {{.Bytes}} NOT NULL UNIQUE
);
CREATE TABLE log_hashes (
	n    {{.Number}} PRIMARY KEY, -- from 0
	hash {{.Bytes}} NOT NULL
);
CREATE TABLE log_head (
	one        INTEGER PRIMARY KEY, -- 1: there is one row, which is locked by who writes
	size       BIGINT NOT NULL, -- how many leaves there are
	checkpoint {{.Bytes}} -- the one signed last; NULL: none
);
INSERT INTO log_head (one, size) VALUES (1, 0);

-- What a verifier remembers.
CREATE TABLE memory (
	tenant TEXT NOT NULL,
	kind   TEXT NOT NULL,
	key    TEXT NOT NULL,
	at     BIGINT NOT NULL,
	value  {{.Bytes}} NOT NULL,
	PRIMARY KEY (tenant, kind, key)
);
CREATE INDEX memory_by_age ON memory (kind, at);
