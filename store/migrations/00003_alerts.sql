-- Alerts for the operator, one for each occurrence, and their pending deliveries to webhooks.

CREATE TABLE alerts (
	n         {{.Number}} PRIMARY KEY, -- from the numbers of calls.n
	tenant    TEXT NOT NULL,
	id        TEXT NOT NULL, -- derived from what it is about: the same thing has the same
	kind      TEXT NOT NULL,
	answer_id TEXT NOT NULL, -- empty if it is about none
	at        BIGINT NOT NULL,
	seen      BIGINT NOT NULL, -- 0: unseen
	relayed   INTEGER NOT NULL, -- 0: not handed to the webhooks yet
	alert     TEXT NOT NULL, -- from which the other columns are derived, except seen
	UNIQUE (tenant, id)
);
CREATE INDEX alerts_by_tenant ON alerts (tenant, n);
CREATE INDEX alerts_by_kind ON alerts (tenant, kind, n);
CREATE INDEX alerts_unseen ON alerts (tenant, n) WHERE seen = 0;
CREATE INDEX alerts_by_answer ON alerts (tenant, answer_id) WHERE answer_id <> '';
CREATE INDEX alerts_outbox ON alerts (n) WHERE relayed = 0;
CREATE INDEX alerts_by_age ON alerts (at);

-- A row for each alert that a webhook has not accepted yet.
CREATE TABLE deliveries (
	webhook  TEXT NOT NULL, -- its name in the configuration
	n        BIGINT NOT NULL, -- alerts.n
	at       BIGINT NOT NULL, -- of the alert
	due      BIGINT NOT NULL, -- or when its lease ends
	attempts BIGINT NOT NULL,
	PRIMARY KEY (webhook, n)
){{.Clustered}};
CREATE INDEX deliveries_due ON deliveries (webhook, due);
CREATE INDEX deliveries_by_alert ON deliveries (n);
CREATE INDEX deliveries_by_age ON deliveries (at);

-- The size of calls.call for each tenant, in bytes.
CREATE TABLE usage (
	tenant TEXT NOT NULL PRIMARY KEY,
	bytes  BIGINT NOT NULL
);
INSERT INTO usage (tenant, bytes) SELECT tenant, CAST(sum(octet_length(call)) AS BIGINT) FROM calls GROUP BY tenant;
