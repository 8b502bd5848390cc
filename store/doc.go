// Package store keeps the answers that pass a gateway, and finds them again: by id, by words, by source, by
// conversation and by run.
//
// A [Call] is what one request and its answer leave behind. [Call.Encode] makes it one JSON object, which is both the
// record of the gateway's journal and the truth of the store's row. All other rows are derived from it, in the same
// transaction: sources, words, the numbers of a conversation's sources, and the events of a run.
//
// A [Recording] is what an agent says of its run besides: steps that no gateway saw. [Store.Trail] joins it with the
// run's calls. A [Feedback] is what a person says of a citation or a source.
//
// A publication is a manifest that is to be built and served: [Store.DuePublications]. A pin is one source of one claim
// as it was cited, with what came of checking it since: [Store.Pins]. A version is a state of a source, whose octets
// are a copy: [Store.Copies]. A recheck says when a source is read again, an incident that something was not as it was
// said.
//
// The engine is SQLite, in one file, or PostgreSQL. Both have the same tables, the same migrations and the same search:
// text is cut into words here, not in the engine.
//
// Every row belongs to a tenant. What belongs to another tenant is [ErrNotFound], as if it were not there.
//
// The package is the only one that knows SQL. docs/store.md describes the tables for those who want to read them.
package store
