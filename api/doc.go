// Package api is the HTTP interface to a gateway's data: stored answers, conversations, sources, runs and their live
// events; steps, spans and feedback that agents and people add; decoding and verification on request, recorded
// failures, and fetched copies of sources. It also serves published data to the public.
//
// [New] returns it as one handler. docs/http.md lists the paths, and openapi.json describes them. Answers are the
// documents of docs/answer.md with the members answer_id and call; errors are problems (RFC 9457).
//
// Lists read their own writes: they wait, within bounds, until everything captured before the request is in the store.
// An answer requested by its id is found even before that.
package api
