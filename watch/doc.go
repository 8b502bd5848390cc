// Package watch runs the background work: on a schedule, or after an answer.
//
// [Retention] removes old answers. [Backfill] makes a second call where a stream ended without citations, and stores
// what it finds as citations of the first answer, marked as inferred. Neither can affect a call: when they fail,
// answers are kept without citations.
//
// [Attribution] finds citations for answers whose provider sent none, in their model's input. [Publishing] builds the
// manifests of published answers. [Freshness] fetches cited sources again and records whether they still support the
// citations. [Alerts] notifies webhooks of what needs attention.
package watch
