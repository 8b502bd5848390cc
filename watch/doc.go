// Package watch does what happens by the clock, or afterwards.
//
// [Retention] removes answers that are old enough. [Backfill] asks a second time where a stream ended without any
// citation, and keeps what it finds as citations of the first answer, marked as inferred. Neither is in the way of a
// call: when they fail, answers stay and have no citations.
//
// [Attribution] finds citations for answers whose provider sent none, in what their model was given. [Publishing]
// builds the manifests of answers that are to be published, and [Freshness] reads what answers cite again and says what
// became of it. [Alerts] tells webhooks of what somebody should look at.
package watch
