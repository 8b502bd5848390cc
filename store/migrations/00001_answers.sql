-- What the engines say the same way is written once; the rest stands in braces: see migrate.go. Times are microseconds since
-- 1970.

-- One row for each answer. The truth is call, the encoded Call; the other columns are taken from it to be searched by.
-- n counts the answers in their order of arrival, and no number comes twice.
CREATE TABLE calls (
	n            {{.Number}} PRIMARY KEY,
	tenant       TEXT NOT NULL,
	answer_id    TEXT NOT NULL,
	provider     TEXT NOT NULL, -- by whose retention it goes
	conversation TEXT,
	run          TEXT,
	step         BIGINT NOT NULL,
	started      BIGINT NOT NULL,
	refetched    TEXT NOT NULL, -- the answer_id of the last refetch that was applied
{{- if .Postgres}}
	document     JSONB NOT NULL, -- for queries: call's document without provider_metadata and without NUL
	terms        TSVECTOR NOT NULL, -- what it is found by
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
	last     BIGINT NOT NULL, -- calls.n of its last answer, as it was stored first
	started  BIGINT NOT NULL,
	ended    BIGINT NOT NULL,
	answers  BIGINT NOT NULL,
	numbered BIGINT NOT NULL, -- how many sources have their number
	PRIMARY KEY (tenant, id)
){{.Clustered}};
CREATE INDEX conversations_by_last ON conversations (tenant, last);
CREATE INDEX conversations_empty ON conversations (tenant, id) WHERE answers <= 0;

-- ibid.Numbering of a conversation: what each answer added to it.
CREATE TABLE numbers (
	tenant       TEXT NOT NULL,
	conversation TEXT NOT NULL,
	number       BIGINT NOT NULL, -- of the first key; those after it count on
	keys         TEXT NOT NULL, -- a JSON array
	PRIMARY KEY (tenant, conversation, number)
){{.Clustered}};

CREATE TABLE runs (
	tenant  TEXT NOT NULL,
	id      TEXT NOT NULL,
	agent   TEXT NOT NULL,
	last    BIGINT NOT NULL, -- calls.n of its last answer, as it was stored first
	started BIGINT NOT NULL,
	ended   BIGINT NOT NULL,
	answers BIGINT NOT NULL,
	seq     BIGINT NOT NULL, -- of its last event
	steps   BIGINT NOT NULL, -- the highest step
	PRIMARY KEY (tenant, id)
){{.Clustered}};
CREATE INDEX runs_by_last ON runs (tenant, last);
CREATE INDEX runs_empty ON runs (tenant, id) WHERE answers <= 0;

-- What happened to a run. While relayed is 0 it is also the outbox.
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
	scopes  TEXT NOT NULL, -- with spaces between
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
	value BIGINT NOT NULL -- the last number that was given
) WITHOUT ROWID;

-- The index of terms: see index.go.
CREATE TABLE segments (
	last    INTEGER PRIMARY KEY, -- the highest calls.n that it is of; no two overlap
	first   BIGINT NOT NULL, -- the lowest
	answers BIGINT NOT NULL,
	deleted BIGINT NOT NULL, -- how many of them were deleted since
	size    BIGINT NOT NULL, -- how many pages it has
	page    BIGINT NOT NULL, -- pages.id of its first page; the others follow
	starts  BLOB NOT NULL -- the first term of each page
);
CREATE TABLE pages (
	id   INTEGER PRIMARY KEY,
	data BLOB NOT NULL
);

CREATE VIEW sources AS
SELECT tenant, answer_id, s.value->>'id' AS id, s.value->>'key' AS key, s.value->>'url' AS url, s.value->>'title' AS title, s.value->>'cited' AS cited
FROM calls, json_each(call, '$.document.sources') AS s;
CREATE VIEW citations AS
SELECT tenant, answer_id, c.value->>'id' AS id, c.value->>'source_id' AS source_id, c.value->>'source_url' AS source_url, c.value->>'cited_text' AS cited_text, c.value->>'quote' AS quote
FROM calls, json_each(call, '$.document.citations') AS c;
{{- end}}
