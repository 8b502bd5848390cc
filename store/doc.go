// Package store keeps the answers that pass through a gateway and finds them again: by id, by words, by source, by
// conversation and by run.
//
// A [Call] records one request and its answer. [Call.Encode] encodes it as one JSON object, which is both the record in
// the gateway's journal and the content of the store's row. All other rows are derived from it in the same transaction:
// sources, words, the numbers of a conversation's sources, and the events of a run.
//
// A [Recording] is what an agent reports about its run: steps that no gateway saw. [Store.Trail] joins it with the
// run's calls. A [Feedback] is a person's judgement of a citation or a source.
//
// A publication is a manifest to be built and served: [Store.DuePublications]. A pin is one source of one claim as it
// was cited, with the result of its last check: [Store.Pins]. A version is a state of a source, whose octets are a
// copy: [Store.Copies]. A recheck schedules the next reading of a source. An incident reports that something published
// turned out to be wrong.
//
// The engine is SQLite, in one file, or PostgreSQL. Both have the same tables, the same migrations and the same search:
// text is split into words here, not in the engine.
//
// Every row belongs to a tenant. Another tenant's rows are [ErrNotFound], as if they did not exist.
//
// This is the only package that contains SQL. docs/store.md describes the tables for those who want to read them.
package store
