// Package gateway passes calls through to providers, byte for byte, and keeps every answer that passes.
//
// A [Gateway] is an [http.Handler]. The first segment of a request's path names an upstream; the rest is appended to
// the upstream's URL as it is. What the client sends and gets is what it would send to and get from the provider
// itself: status, headers, body, trailers, timing, errors. Only these differ:
//
//   - the headers Ibid-Run, Ibid-Step, Ibid-Conversation, Ibid-Follows, Ibid-Agent, Ibid-Publish and Ibid-Token of a
//     request are for ibid and go no further;
//   - on captured routes the upstream is asked for an uncompressed body, and the request is read whole before it is
//     sent;
//   - Ibid-Answer and Ibid-Run are added to a response whose answer is captured, Ibid-Run also where the request has
//     it;
//   - where answers are published ([Citing]) Citation-Source is added, in the header or as a trailer, and the bytes of
//     a JSON response are passed on when the last one came;
//   - headers that are about one connection (RFC 9110, section 7.6.1) are not passed on, nor is an offer to change its
//     protocol (Upgrade to another HTTP or to TLS), nor are Alt-Svc and Strict-Transport-Security of a response, which
//     are about the upstream's host.
//
// A captured route is one whose response is an answer: internal/call knows them. There the response passes a tee.Body,
// which decodes it on the way. At the answer's end mark it becomes a store.Call, is appended to the journal, and only
// when it is on disk there the client gets to see the end mark ([Strict]). So whoever saw an answer's end can rely on
// finding it. The indexer, [Gateway.Run], moves the journal into the store; until it has, [Gateway.Find] knows the
// answer.
//
// [Gateway.Transport] makes the same calls from inside the process, without a listener and without a token: whoever
// calls says who they are. Nothing that a client sends can say so.
//
// Captured is what a provider answers with a 2xx status. An error status is counted but not kept: a client with a wrong
// key that tries again and again would fill the store with nothing. An error inside a stream that began well is kept
// with its answer. A 2xx response in which there is no answer, a page that a proxy on the way put there, is not kept
// either; its Ibid-Answer then leads nowhere.
//
// A client's call never fails for the capture's sake. What cannot be captured is counted, and [Gateway.Ready] says why.
package gateway
