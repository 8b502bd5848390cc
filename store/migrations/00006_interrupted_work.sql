-- Work that a process began, so that what ends its process is recognised: see interrupted.go.

ALTER TABLE rechecks ADD COLUMN process TEXT NOT NULL DEFAULT ''; -- that began it and has not reported its end
ALTER TABLE rechecks ADD COLUMN begun BIGINT NOT NULL DEFAULT 0; -- the end of its lease
ALTER TABLE rechecks ADD COLUMN deaths BIGINT NOT NULL DEFAULT 0; -- how many processes in a row ended during it
CREATE INDEX rechecks_begun ON rechecks (process) WHERE process <> '';
CREATE INDEX rechecks_suspect ON rechecks (due) WHERE deaths > 0;

ALTER TABLE publications ADD COLUMN process TEXT NOT NULL DEFAULT '';
ALTER TABLE publications ADD COLUMN begun BIGINT NOT NULL DEFAULT 0;
ALTER TABLE publications ADD COLUMN deaths BIGINT NOT NULL DEFAULT 0;
CREATE INDEX publications_begun ON publications (process) WHERE process <> '';
CREATE INDEX publications_suspect ON publications (due) WHERE deaths > 0;
