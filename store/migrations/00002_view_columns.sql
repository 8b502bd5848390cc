-- Columns that tables of citations usually have: the document's name, the quoted words, the positions in the answer,
-- the provider's confidence, and the time of the answer.

DROP VIEW citations;
DROP VIEW sources;

{{if .Postgres -}}
CREATE VIEW sources AS
SELECT tenant, answer_id, s->>'id' AS id, s->>'key' AS key, s->>'url' AS url, s->>'title' AS title, (s->>'cited')::boolean AS cited,
	s->>'kind' AS kind, s->>'filename' AS filename, to_timestamp(started / 1000000.0) AS created_at
FROM calls, jsonb_array_elements(document->'sources') AS s;
CREATE VIEW citations AS
SELECT tenant, answer_id, c->>'id' AS id, c->>'source_id' AS source_id, c->>'source_url' AS source_url, c->>'cited_text' AS cited_text, c->>'quote' AS quote,
	c->>'source_title' AS source_title, document->>'unit' AS unit, (c->>'text_start')::bigint AS text_start, (c->>'text_end')::bigint AS text_end,
	(c->>'claim_start')::bigint AS claim_start, (c->>'claim_end')::bigint AS claim_end, (c->>'confidence')::float8 AS confidence,
	to_timestamp(started / 1000000.0) AS created_at
FROM calls, jsonb_array_elements(document->'citations') AS c;
{{- else -}}
CREATE VIEW sources AS
SELECT tenant, answer_id, s.value->>'id' AS id, s.value->>'key' AS key, s.value->>'url' AS url, s.value->>'title' AS title, s.value->>'cited' AS cited,
	s.value->>'kind' AS kind, s.value->>'filename' AS filename, datetime(started / 1000000, 'unixepoch') AS created_at
FROM calls, json_each(call, '$.document.sources') AS s;
CREATE VIEW citations AS
SELECT tenant, answer_id, c.value->>'id' AS id, c.value->>'source_id' AS source_id, c.value->>'source_url' AS source_url, c.value->>'cited_text' AS cited_text, c.value->>'quote' AS quote,
	c.value->>'source_title' AS source_title, call->>'$.document.unit' AS unit, c.value->>'text_start' AS text_start, c.value->>'text_end' AS text_end,
	c.value->>'claim_start' AS claim_start, c.value->>'claim_end' AS claim_end, c.value->>'confidence' AS confidence,
	datetime(started / 1000000, 'unixepoch') AS created_at
FROM calls, json_each(call, '$.document.citations') AS c;
{{- end}}
