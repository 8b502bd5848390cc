// Package api is the HTTP interface to what a gateway kept: answers, conversations, sources, runs and their live
// events, to what agents and people add to it: steps of runs, spans, feedback; to decoding and verifying on request,
// what failed there, and the sources as they were read. To strangers it serves what is published.
//
// [New] returns it as one handler. docs/http.md lists the paths, openapi.json describes them; answers are the
// documents of docs/answer.md with the members answer_id and call, errors are problems by RFC 9457.
//
// Lists read their own writes: they wait, within bounds, until what was captured before the call is in the store. What
// is asked for by its id is found even before.
package api
