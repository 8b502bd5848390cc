{{if .Postgres -}}
-- Answers are partitioned by answer_id, which begins with the time of the call: see partition.go. It is compared byte
-- by byte, the order in which ids increase. document is only set if PostgreSQL cannot read it in call.

DROP VIEW citations;
DROP VIEW sources;
ALTER TABLE calls RENAME TO calls_before;
CREATE TABLE calls (
	n            BIGINT NOT NULL,
	tenant       TEXT NOT NULL,
	answer_id    TEXT COLLATE "C" NOT NULL,
	provider     TEXT NOT NULL,
	conversation TEXT,
	run          TEXT,
	step         BIGINT NOT NULL,
	counted      INTEGER NOT NULL,
	started      BIGINT NOT NULL,
	refetched    TEXT NOT NULL,
	document     JSONB,
	terms        TSVECTOR NOT NULL,
	call         TEXT NOT NULL
) PARTITION BY RANGE (answer_id);
CREATE TABLE calls_other PARTITION OF calls DEFAULT;
DO $$
DECLARE
	span TEXT;
BEGIN
	FOR span IN SELECT DISTINCT substr(answer_id, 5, 4) FROM calls_before
		WHERE answer_id ~ '^ans_01[0-9a-f]{6}-' LOOP
		EXECUTE format('CREATE TABLE %I PARTITION OF calls FOR VALUES FROM (%L) TO (%L)', 'calls_' || span, 'ans_' || span,
			'ans_' || right('000' || to_hex(('x' || lpad(span, 8, '0'))::bit(32)::int + 1), 4));
	END LOOP;
END $$;
INSERT INTO calls SELECT n, tenant, answer_id, provider, conversation, run, step, counted, started, refetched, document, terms, call
	FROM calls_before ORDER BY n;
DROP TABLE calls_before;
CREATE UNIQUE INDEX calls_by_id ON calls (tenant, answer_id);
CREATE INDEX calls_by_n ON calls (n);
CREATE INDEX calls_by_tenant ON calls (tenant, n);
CREATE INDEX calls_by_conversation ON calls (tenant, conversation, started, n) WHERE conversation IS NOT NULL;
CREATE INDEX calls_by_run ON calls (tenant, run, started, n) WHERE run IS NOT NULL;
CREATE INDEX calls_by_age ON calls (provider, started);
CREATE INDEX calls_by_term ON calls USING gin (terms);
-- Compared with calls.answer_id; an index with another collation would not be used for that.
ALTER TABLE pins ALTER COLUMN answer_id TYPE TEXT COLLATE "C";

CREATE VIEW sources AS
SELECT tenant, answer_id, s->>'id' AS id, s->>'key' AS key, s->>'url' AS url, s->>'title' AS title, COALESCE((s->>'cited')::boolean, false) AS cited,
	s->>'kind' AS kind, s->>'filename' AS filename, to_timestamp(started / 1000000.0) AS created_at
FROM calls, json_array_elements(COALESCE(document::json, call::json->'document')->'sources') AS s;
CREATE VIEW citations AS
SELECT tenant, answer_id, c->>'id' AS id, c->>'source_id' AS source_id, c->>'source_url' AS source_url, c->>'cited_text' AS cited_text, c->>'quote' AS quote,
	c->>'source_title' AS source_title, d->>'unit' AS unit, (c->>'text_start')::bigint AS text_start, (c->>'text_end')::bigint AS text_end,
	(c->>'claim_start')::bigint AS claim_start, (c->>'claim_end')::bigint AS claim_end, (c->>'confidence')::float8 AS confidence,
	to_timestamp(started / 1000000.0) AS created_at
FROM calls, COALESCE(document::json, call::json->'document') AS d, json_array_elements(d->'citations') AS c;
{{- else -}}
DROP VIEW sources;
CREATE VIEW sources AS
SELECT tenant, answer_id, s.value->>'id' AS id, s.value->>'key' AS key, s.value->>'url' AS url, s.value->>'title' AS title,
	COALESCE(s.value->>'cited', 0) AS cited, s.value->>'kind' AS kind, s.value->>'filename' AS filename,
	datetime(started / 1000000, 'unixepoch') AS created_at
FROM calls, json_each(call, '$.document.sources') AS s;

-- Which answers have a term, without its positions, which are not needed. Reindex fills it.
DROP TABLE words;
CREATE VIRTUAL TABLE words USING fts5(terms, content='', contentless_delete=1, detail='none', tokenize='ascii');
{{- end}}
