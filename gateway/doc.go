// Package gateway passes calls through to providers, byte for byte, and keeps every answer that passes.
//
// A [Gateway] is an [http.Handler]. The first segment of a request's path names an upstream; the rest is appended to
// the upstream's URL unchanged. The client sends and receives what it would exchange with the provider directly:
// status, headers, body, trailers, timing, errors. The only differences are:
//
//   - the request headers Ibid-Run, Ibid-Step, Ibid-Conversation, Ibid-Follows, Ibid-Agent, Ibid-Publish and
//     Ibid-Token are for ibid and are not forwarded;
//   - on captured routes the upstream is asked for an uncompressed body, and the request is read whole before it is
//     sent;
//   - Ibid-Answer and Ibid-Run are added to a response whose answer is captured, Ibid-Run also if the request has it;
//   - where answers are published ([Citing]), Citation-Source is added as a header or trailer, and a JSON response is
//     held until its last byte has arrived;
//   - hop-by-hop headers (RFC 9110, section 7.6.1) are not forwarded, nor is an offer to change the protocol (Upgrade
//     to another HTTP version or to TLS), nor are the response headers Alt-Svc and Strict-Transport-Security, which
//     concern the upstream's host.
//
// A captured route is one whose response is an answer, according to internal/call. Its response passes through a
// tee.Body, which decodes it on the way. At its end mark, the answer becomes a store.Call and is appended to the
// journal; the client receives the end mark only after the record is on disk ([Strict]). So a client that has seen an
// answer's end can rely on finding the answer. The indexer, [Gateway.Run], moves the journal into the store; until it
// has, [Gateway.Find] returns the answer.
//
// [Gateway.Transport] makes the same calls from inside the process, without a listener or a token: the caller states
// its identity. Nothing a client sends can do that.
//
// Only responses with a 2xx status are captured. Error statuses are counted but not kept: a client that retries with a
// wrong key would fill the store with nothing. An error inside a stream that began well is kept with its answer. A 2xx
// response without an answer, such as a page inserted by a proxy, is not kept either; its Ibid-Answer then leads
// nowhere.
//
// A client's call never fails because of the capture. What cannot be captured is counted, and [Gateway.Ready] reports
// why.
package gateway
