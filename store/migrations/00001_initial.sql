-- What both engines share is written once; the rest is in braces: see migrate.go. Times are microseconds since 1970.

-- One row for each answer. call is the encoded Call, from which the other columns are derived for searching. n numbers
-- the answers in their order of arrival, and no number is used twice.
CREATE TABLE calls (
	n            {{.Number}} PRIMARY KEY,
	tenant       TEXT NOT NULL,
	answer_id    TEXT NOT NULL,
	provider     TEXT NOT NULL, -- determines its retention
	conversation TEXT,
	run          TEXT,
	step         BIGINT NOT NULL,
	counted      INTEGER NOT NULL, -- 1: the number of the step was only counted, and gives way to an explicit one
	started      BIGINT NOT NULL,
	refetched    TEXT NOT NULL, -- the answer_id of the last refetch that was applied
{{- if .Postgres}}
	document     JSONB NOT NULL, -- for queries: call's document without provider_metadata and without NUL
	terms        TSVECTOR NOT NULL, -- the search terms
{{- end}}
	call         TEXT NOT NULL,
	UNIQUE (tenant, answer_id)
);
CREATE INDEX calls_by_tenant ON calls (tenant, n);
CREATE INDEX calls_by_conversation ON calls (tenant, conversation, started{{if .Postgres}}, n{{end}}) WHERE conversation IS NOT NULL;
CREATE INDEX calls_by_run ON calls (tenant, run, started{{if .Postgres}}, n{{end}}) WHERE run IS NOT NULL;
CREATE INDEX calls_by_age ON calls (provider, started);

CREATE TABLE conversations (
	tenant   TEXT NOT NULL,
	id       TEXT NOT NULL,
	last     BIGINT NOT NULL, -- calls.n of its last answer, as first stored
	started  BIGINT NOT NULL,
	ended    BIGINT NOT NULL,
	answers  BIGINT NOT NULL,
	numbered BIGINT NOT NULL, -- how many sources are numbered
	PRIMARY KEY (tenant, id)
){{.Clustered}};
CREATE INDEX conversations_by_last ON conversations (tenant, last);
CREATE INDEX conversations_empty ON conversations (tenant, id) WHERE answers <= 0;

-- ibid.Numbering of a conversation: what each answer added to it.
CREATE TABLE numbers (
	tenant       TEXT NOT NULL,
	conversation TEXT NOT NULL,
	number       BIGINT NOT NULL, -- of the first key; the others follow
	keys         TEXT NOT NULL, -- a JSON array
	PRIMARY KEY (tenant, conversation, number)
){{.Clustered}};

CREATE TABLE runs (
	tenant   TEXT NOT NULL,
	id       TEXT NOT NULL,
	agent    TEXT NOT NULL,
	last     BIGINT NOT NULL, -- from the numbers of calls.n: that of its last answer, as first stored, or one taken for its last record
	started  BIGINT NOT NULL, -- like ended, 0 if unknown
	ended    BIGINT NOT NULL,
	answers  BIGINT NOT NULL,
	seq      BIGINT NOT NULL, -- of its last event
	steps    BIGINT NOT NULL, -- the highest step
	question TEXT NOT NULL, -- its beginning, for lists
	strategy TEXT NOT NULL,
	captured TEXT NOT NULL, -- the strategy of its calls, which takes precedence over the recorded one
	counted  BIGINT NOT NULL, -- how many of its steps have a counted number
	made     BIGINT NOT NULL, -- when it was first stored, by our clock
	finished BIGINT NOT NULL, -- 0: not reported
	recorded BIGINT NOT NULL, -- the number of its rows in records
	size     BIGINT NOT NULL, -- their size in bytes
	touched  BIGINT NOT NULL, -- when they last changed, by our clock: retention counts from it
	PRIMARY KEY (tenant, id)
){{.Clustered}};
CREATE INDEX runs_by_last ON runs (tenant, last);
CREATE INDEX runs_by_strategy ON runs (tenant, strategy) WHERE strategy <> '';
CREATE INDEX runs_by_age ON runs (touched) WHERE recorded > 0;
CREATE INDEX runs_empty ON runs (tenant, id) WHERE answers <= 0 AND recorded <= 0;

-- What agents recorded of their runs: a row for each step, and one with an empty id for the run itself, which exists if
-- any other does. The other columns are derived from record.
CREATE TABLE records (
	n       {{.Number}} PRIMARY KEY, -- from the numbers of calls.n
	tenant  TEXT NOT NULL,
	run     TEXT NOT NULL,
	id      TEXT NOT NULL, -- "id:" and the step's id, or "n:" and its number, or "a:" and the number first assigned to it
	number  BIGINT NOT NULL, -- of the step; 0 if it has none
	started BIGINT NOT NULL, -- when it began, as far as was known when it was stored; it does not change
	record  TEXT NOT NULL,
	UNIQUE (tenant, run, id)
);
CREATE UNIQUE INDEX records_by_number ON records (tenant, run, number) WHERE number > 0;
CREATE INDEX records_by_time ON records (tenant, run, started, n);

-- Feedback on citations and sources. Rows are never changed: the last one for a subject counts.
CREATE TABLE feedback (
	n         {{.Number}} PRIMARY KEY, -- from the numbers of calls.n
	tenant    TEXT NOT NULL,
	run       TEXT,
	answer_id TEXT,
	citation  TEXT, -- null: the answer as a whole, or a source
	source    TEXT, -- its lookup key
	subject   TEXT NOT NULL, -- the hash of what was judged and by whom; unique if unsigned
	verdict   TEXT NOT NULL, -- empty: a rating
	relevance {{if .Postgres}}DOUBLE PRECISION{{else}}REAL{{end}},
	feedback  TEXT NOT NULL -- from which the other columns are derived
);
CREATE INDEX feedback_by_tenant ON feedback (tenant, n);
CREATE INDEX feedback_by_run ON feedback (tenant, run, n) WHERE run IS NOT NULL;
CREATE INDEX feedback_by_answer ON feedback (tenant, answer_id, n) WHERE answer_id IS NOT NULL;
CREATE INDEX feedback_by_source ON feedback (tenant, source, n) WHERE source IS NOT NULL;
CREATE INDEX feedback_by_subject ON feedback (tenant, subject, n);

-- Events of runs. While relayed is 0, a row is also in the outbox.
CREATE TABLE events (
	tenant  TEXT NOT NULL,
	run     TEXT NOT NULL,
	seq     BIGINT NOT NULL,
	id      BIGINT NOT NULL,
	kind    TEXT NOT NULL,
	at      BIGINT NOT NULL,
	relayed INTEGER NOT NULL,
	data    TEXT NOT NULL,
	PRIMARY KEY (tenant, run, seq)
){{.Clustered}};
CREATE INDEX outbox ON events (id) WHERE relayed = 0;

CREATE TABLE tokens (
	id      TEXT NOT NULL PRIMARY KEY,
	tenant  TEXT NOT NULL,
	name    TEXT NOT NULL,
	scopes  TEXT NOT NULL, -- separated by spaces
	publish INTEGER NOT NULL,
	created BIGINT NOT NULL,
	revoked BIGINT NOT NULL, -- 0: valid
	hash    TEXT NOT NULL UNIQUE -- SHA-256 of the secret, hexadecimal
);

{{if .Postgres -}}
CREATE SEQUENCE calls_n;
CREATE SEQUENCE events_id;
CREATE INDEX calls_by_term ON calls USING gin (terms);

CREATE VIEW sources AS
SELECT tenant, answer_id, s->>'id' AS id, s->>'key' AS key, s->>'url' AS url, s->>'title' AS title, (s->>'cited')::boolean AS cited
FROM calls, jsonb_array_elements(document->'sources') AS s;
CREATE VIEW citations AS
SELECT tenant, answer_id, c->>'id' AS id, c->>'source_id' AS source_id, c->>'source_url' AS source_url, c->>'cited_text' AS cited_text, c->>'quote' AS quote
FROM calls, jsonb_array_elements(document->'citations') AS c;
{{- else -}}
CREATE TABLE counters (
	name  TEXT NOT NULL PRIMARY KEY,
	value BIGINT NOT NULL -- the last number taken
) WITHOUT ROWID;

-- The index of terms: see search.go.
CREATE VIRTUAL TABLE words USING fts5(terms, content='', contentless_delete=1, tokenize='ascii');

CREATE VIEW sources AS
SELECT tenant, answer_id, s.value->>'id' AS id, s.value->>'key' AS key, s.value->>'url' AS url, s.value->>'title' AS title, s.value->>'cited' AS cited
FROM calls, json_each(call, '$.document.sources') AS s;
CREATE VIEW citations AS
SELECT tenant, answer_id, c.value->>'id' AS id, c.value->>'source_id' AS source_id, c.value->>'source_url' AS source_url, c.value->>'cited_text' AS cited_text, c.value->>'quote' AS quote
FROM calls, json_each(call, '$.document.citations') AS c;
{{- end}}

-- Publishing answers and checking citations. Times are microseconds since 1970; tenants, runs, ids and addresses are
-- lookup keys.

-- Random bytes, generated once.
CREATE TABLE secrets (
	name  TEXT NOT NULL PRIMARY KEY,
	value TEXT NOT NULL -- base64url
);

-- Manifests that are, or will be, published: a row for each revision of an answer's manifest, or of a run's final one.
CREATE TABLE publications (
	pub        TEXT NOT NULL, -- the public id of the run; empty for one with ids of its own
	answer_id  TEXT NOT NULL, -- empty: the run's final one
	revision   BIGINT NOT NULL, -- from 1
	tenant     TEXT NOT NULL,
	run        TEXT NOT NULL, -- empty: the answer is in none
	path       TEXT NOT NULL UNIQUE, -- where it is served
	supersedes TEXT NOT NULL, -- the path of the revision before it; empty if there is none
	state      TEXT NOT NULL, -- waiting (for the run's end), pending, built, failed or expired
	due        BIGINT NOT NULL, -- waiting: when something of the run was last published; pending: when it is to be built, or its lease ends; built: since when
	attempts   BIGINT NOT NULL,
	changes    BIGINT NOT NULL, -- how often its content has changed
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

-- Octets of sources, each stored once.
CREATE TABLE copies (
	hash   TEXT NOT NULL PRIMARY KEY,
	coding TEXT NOT NULL, -- zstd, or empty
	size   BIGINT NOT NULL, -- decoded
	seen   BIGINT NOT NULL, -- when they were last read: retention counts from it
	octets {{.Bytes}} NOT NULL
);
CREATE INDEX copies_by_age ON copies (seen);

-- Versions of sources: a row for each change.
CREATE TABLE versions (
	n         {{.Number}} PRIMARY KEY, -- from the numbers of calls.n
	tenant    TEXT NOT NULL,
	url       TEXT NOT NULL,
	hash      TEXT NOT NULL, -- of the octets, which need not be in copies
	media     TEXT NOT NULL,
	last_seen BIGINT NOT NULL, -- when it was last seen
	version   TEXT NOT NULL -- from which the other columns are derived
);
CREATE INDEX versions_by_url ON versions (tenant, url, n);
CREATE INDEX versions_by_hash ON versions (hash, tenant);
CREATE INDEX versions_by_age ON versions (last_seen, n);

-- Citations: a row for each citation, claim and source of a manifest.
CREATE TABLE pins (
	n         {{.Number}} PRIMARY KEY, -- from the numbers of calls.n
	tenant    TEXT NOT NULL,
	url       TEXT NOT NULL,
	answer_id TEXT NOT NULL,
	run       TEXT NOT NULL,
	citation  TEXT NOT NULL,
	claim     TEXT NOT NULL,
	source    TEXT NOT NULL,
	path      TEXT NOT NULL, -- of the manifest; empty if it is in none
	rank      BIGINT NOT NULL, -- of status: see severity; 0 if unchecked
	status    TEXT NOT NULL,
	checked   BIGINT NOT NULL,
	detail    TEXT NOT NULL, -- JSON; empty if there is none
	pin       TEXT NOT NULL, -- the rest
	UNIQUE (tenant, answer_id, path, citation, claim, source)
);
CREATE INDEX pins_by_url ON pins (tenant, url);
CREATE INDEX pins_by_path ON pins (tenant, path) WHERE path <> '';
CREATE INDEX pins_by_answer ON pins (tenant, answer_id, rank) WHERE rank > 0; -- otherwise SQLite uses one of the next two, and reads all of a tenant's
CREATE INDEX pins_by_rank ON pins (tenant, rank, answer_id) WHERE rank > 0;
CREATE INDEX pins_by_status ON pins (tenant, status, answer_id) WHERE rank > 0;

-- Sources to be read again, and when.
CREATE TABLE rechecks (
	tenant   TEXT NOT NULL,
	url      TEXT NOT NULL,
	address  TEXT NOT NULL, -- in full
	due      BIGINT NOT NULL, -- or when its lease ends
	checked  BIGINT NOT NULL, -- 0: never
	failures BIGINT NOT NULL, -- in a row
	PRIMARY KEY (tenant, url)
){{.Clustered}};
CREATE INDEX rechecks_due ON rechecks (due);

-- Progress of batch work.
CREATE TABLE marks (
	name  TEXT NOT NULL PRIMARY KEY,
	value BIGINT NOT NULL
);

-- Incidents. Rows are never changed or removed; each has the hash of the one before.
CREATE TABLE incidents (
	tenant    TEXT NOT NULL,
	seq       BIGINT NOT NULL, -- from 1, without gaps
	key       TEXT NOT NULL, -- a hash of what it is about
	manifest  TEXT NOT NULL, -- its digest; empty: it could not be read
	source    TEXT NOT NULL,
	status    TEXT NOT NULL,
	answer_id TEXT NOT NULL, -- empty: the manifest is not ours
	incident  TEXT NOT NULL, -- from which the other columns are derived
	PRIMARY KEY (tenant, seq),
	UNIQUE (tenant, key)
){{.Clustered}};
CREATE INDEX incidents_by_manifest ON incidents (tenant, manifest, seq) WHERE manifest <> '';
CREATE INDEX incidents_by_source ON incidents (tenant, source, seq);
CREATE INDEX incidents_by_answer ON incidents (tenant, answer_id, seq) WHERE answer_id <> '';

-- The transparency log: leaves, the hashes of the tree in the order of their creation, and the last checkpoint.
CREATE TABLE log_leaves (
	n    {{.Number}} PRIMARY KEY, -- from 0
	leaf {{.Bytes}} NOT NULL UNIQUE
);
CREATE TABLE log_hashes (
	n    {{.Number}} PRIMARY KEY, -- from 0
	hash {{.Bytes}} NOT NULL
);
CREATE TABLE log_head (
	one        INTEGER PRIMARY KEY, -- 1: there is one row, which writers lock
	size       BIGINT NOT NULL, -- the number of leaves
	checkpoint {{.Bytes}} -- the last one signed; NULL if there is none
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
