-- Runs that are more than a single call: see Query.Stepped.
CREATE INDEX runs_stepped ON runs (tenant, last) WHERE answers > 1 OR recorded > 0 OR steps > 1;
