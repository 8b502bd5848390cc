package api

import (
	_ "embed"
	"net/http"
	"slices"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/biblio"
	"github.com/ibidhq/ibid/export"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/trail/otel"
	"github.com/ibidhq/ibid/verify"
)

// Routes returns the endpoints of an API as data: their handlers cannot be called.
func Routes() []httpx.Route { return (&API{}).routes() }

// openAPI is the description of all that ibid serves. Package server writes it, from the tables of routes.
//
//go:embed openapi.json
var openAPI []byte

// routes are the endpoints. docs/http.md lists them.
func (a *API) routes() []httpx.Route {
	return slices.Concat(
		a.answerRoutes(), a.runRoutes(), a.verifyRoutes(), a.tokenRoutes(), a.operatorRoutes(), a.publicRoutes())
}

// showParams are the parameters of what has answer documents in it.
func showParams() []httpx.Param {
	return []httpx.Param{
		httpx.AnyOf("unit: what offsets count; without it, UTF-8 bytes", text.Strings(ibid.Units())...),
		httpx.OneOf("style: how cited_text is written; with as=json only", text.Strings(ibid.Styles())...),
	}
}

// mediaTypes returns the media types of the forms that are not JSON, each once.
func mediaTypes(forms []string) []string {
	var media []string
	for _, form := range forms {
		media = append(media, MediaType(form))
	}
	slices.Sort(media)
	return slices.Compact(media)
}

// answerRoutes are about answers, their conversations and their sources.
func (a *API) answerRoutes() []httpx.Route {
	const read, write = store.ScopeRead, store.ScopeWrite
	page, long := httpx.PageParams(defaultLimit), httpx.PageParams(maxLimit)
	as, texts, show := httpx.OneOf, httpx.Texts, showParams()
	forms := slices.Concat(
		[]string{asJSON}, text.Strings(ibid.Styles()), text.Strings(biblio.Formats()), text.Strings(export.Formats()))
	form := as("as: the answer document, the text with citations in a style, a bibliography, "+
		"or the shape of another program", forms...)
	return []httpx.Route{
		{
			Method: "POST", Pattern: "/v1/decode", Scope: read, Tenant: httpx.NoTenant, Handle: a.decode,
			Doc: "Decodes a provider's response. The body is the response as it came, whatever its Content-Type, " +
				"or a form with the parts response, request and documents: a JSON array of strings, flat objects, " +
				"or objects of id and data. Nothing is stored, and answer_id is null. A response that breaks off " +
				"is a 200 with complete false; a provider's error is a 200 with error, or a 422 where as cannot " +
				"show it. It may be compressed; unpacked, it has the same limit. It may take two minutes.",
			Body: []string{"application/octet-stream", "multipart/form-data"}, MaxBody: maxDecode,
			Response: ibid.Document{}, Media: mediaTypes(forms), Problems: []string{gateway.CodeUnreadable},
			Params: slices.Concat([]httpx.Param{httpx.AnyOf(
				"format: the format of the response; without it, it is recognised", ibid.Formats()...), form}, show),
		},
		{
			Method: "POST", Pattern: "/v1/prompt", Scope: read, Handle: a.prompt, MaxBody: maxPrompt,
			Doc: "Writes documents, and sources of stored answers, as the XML that providers recommend for " +
				"passages in a prompt, escaped. There is a result for each with file_id, filename and url, and a " +
				"content for each passage. Where several have one file_id, the first keeps it and the others " +
				"have -2 and so on behind it. A source that is asked for twice is there once. Of a source it is " +
				"what the latest answer has of it; up to 100, and one that is not there is a 404.",
			Request: promptRequest{}, Response: promptBody{}, Problems: []string{gateway.CodeNotFound},
		},
		httpx.List(httpx.Route{
			Pattern: "/v1/answers", Scope: read,
			Doc: "Lists answers, the last stored first.",
			Params: slices.Concat(texts(
				"q: words that all stand in the answer, in what was asked, or in its quotes and titles",
				"source: the URL of a source, in any form, or its key",
				"conversation: the id of a conversation", "run: the id of a run",
				"verification: failed, unverifiable, passed, unchecked, or a status that a citation of the answer has",
			), page, show),
		}, "answers", &a.reader, httpx.ByQuery(a.store.Calls), showListedCall),
		{
			Pattern: "/v1/answers/{id}", Scope: read, Handle: a.answer, Response: answerBody{},
			Doc: "Returns an answer, as soon as its client saw its end. Its sources are numbered from 1. The " +
				"member call says how it came to be: step is null until the answer is stored, after are the steps " +
				"it builds on, null for the one before. A citation's verification is the worst that came of " +
				"checking it.",
			Params: slices.Concat([]httpx.Param{form}, show), Media: mediaTypes(forms), Status: []int{200, 304},
		},
		{
			Method: "DELETE", Pattern: "/v1/answers/{id}", Scope: write, Handle: a.deleteAnswer, Status: []int{204},
			Doc: "Deletes an answer, and what was derived from it. Its sources keep their numbers in its " +
				"conversation. A captured answer that cannot be stored now, because the store is away, is a 503: " +
				"try again.",
		},
		httpx.JSON(httpx.Route{
			Pattern: "/v1/answers/{id}/manifest", Scope: read,
			Doc: "Returns where the latest revision of an answer's published manifest is. The state is pending " +
				"until it is built, and the hash of its body null. The salt, in hexadecimal, is what hashes of " +
				"private inputs and outputs are made with, for auditors: callers with the scope admin or publish " +
				"get it.",
		}, a.answerManifest),
		httpx.List(httpx.Route{
			Pattern: "/v1/conversations", Scope: read, Params: page,
			Doc: "Lists conversations, the one with the latest answer first.",
		}, "conversations", &a.reader, httpx.ByQuery(a.store.Conversations), showListedConversation),
		{
			Pattern: "/v1/conversations/{id}", Scope: read, Handle: a.conversation, Response: conversationBody{},
			Doc: "Returns the latest messages of a conversation, oldest first, with citations numbered as they " +
				"were shown. What clients repeat with every call is there once. The numbers never change; " +
				"numbering has them by the keys of sources, also of deleted answers. With as=ui they are a list " +
				"of the AI SDK's UI messages with UTF-16 offsets, questions that are still being answered at its " +
				"end, and a Link header leads to older ones.",
			Params: slices.Concat([]httpx.Param{as("as: the shape of the messages", asJSON, asUI)}, long, show),
			Media:  []string{"application/json"},
		},
		httpx.List(httpx.Route{
			Pattern: "/v1/sources", Scope: read,
			Doc: "Lists the answers that have a source, the last stored first. One of url and id is needed; with " +
				"both, either suffices. Where an answer found the source and did not cite it, citations is empty.",
			Params: slices.Concat(texts("url: the address of the source", "id: its id or key"), page),
		}, "sources", &a.reader, a.sources, showUse),
		httpx.List(httpx.Route{
			Pattern: "/v1/sources/versions", Scope: read,
			Doc: "Lists the versions of a source that were read, the latest first. There is a new one for each " +
				"change of octets, media type, status or final address. Of a kept one there is a copy.",
			Params: slices.Concat(texts("url: the address of the source; needed"), page),
		}, "versions", &a.reader, a.versions, showVersion),
		{
			Pattern: "/v1/copies/{hash}", Scope: read, Handle: a.copyOf,
			Doc: "Returns the octets of a source as they were read, by the hash of a version. They are " +
				"application/octet-stream whatever they were sent as, so that a stranger's page is never shown as " +
				"ibid's; as=warc is a compressed WARC 1.1 file with the response's header and where it came from. " +
				"404 if the tenant never read it, or it is not kept any more.",
			Params:   []httpx.Param{as("as: the octets, or a WARC file with its record", asOctets, asWARC)},
			Media:    []string{"application/octet-stream", "application/gzip"},
			Problems: []string{gateway.CodeNotFound}, Status: []int{200, 304},
		},
		{
			Pattern: "/v1/feedback", Scope: read, Handle: a.feedback, Response: feedbackList{},
			Doc: "Lists feedback, the last first, and counts all of it. As csv and jsonl it is all of it from " +
				"cursor on, one row for each source, with source_title, retriever_score (how well it fits, as the " +
				"step's search or the provider said), score_origin (which of them) and rank, its place in the " +
				"results. Step and source of a verdict are then the step of the answer and the key of a source of " +
				"the citation. Unknown is empty or null; texts that a spreadsheet would take for a formula get an " +
				"apostrophe. Nothing is looked up in runs over 8 MiB.",
			Params: slices.Concat(
				[]httpx.Param{as("as: a page as JSON, or all of it as rows", asJSON, asCSV, asJSONL)},
				texts("answer: the id of an answer", "run: the id of a run", "source: the id or key of a source",
					"strategy: name@version of a run's strategy"), page),
			Media: []string{"application/jsonl", "text/csv; charset=utf-8; header=present"},
		},
		{
			Method: "POST", Pattern: "/v1/feedback", Scope: write, Handle: a.newFeedback, Status: []int{201},
			Doc: "Stores what a person says of a citation, an answer, or a source of a run: a verdict with an " +
				"answer_id, or a relevance with a run and a source. A run that is not the answer's is a 400. Of " +
				"several, a person's last word counts. Feedback goes with its answer or run.",
			Request: feedbackOrder{}, Response: feedbackBody{}, Problems: []string{gateway.CodeNotFound},
			Example: `{"by": "ann", "answer_id": "ans_1", "citation": "c-1", "verdict": "wrong-source"}`,
		},
	}
}

// runRoutes are about the runs of agents.
func (a *API) runRoutes() []httpx.Route {
	const read, write = store.ScopeRead, store.ScopeWrite
	recording := func(rt httpx.Route) httpx.Route {
		rt.Method, rt.Scope, rt.Response, rt.MaxBody = "POST", write, recordedBody{}, maxRun
		rt.Status, rt.Problems = []int{200, 201}, []string{gateway.CodeConflict}
		return rt
	}
	return []httpx.Route{
		httpx.List(httpx.Route{
			Pattern: "/v1/runs", Scope: read, Params: httpx.PageParams(defaultLimit),
			Doc: "Lists runs, the one with the latest call or record first. A question is cut at 1 KiB.",
		}, "runs", &a.reader, httpx.ByQuery(a.store.Runs), showRun),
		recording(httpx.Route{
			Pattern: "/v1/runs", Handle: a.newRun, Request: trail.Trail{}, Body: []string{"application/jsonl"},
			Doc: "Records a run: what is known at its beginning, or all of it. Without run_id it gets one. A known " +
				"run takes up the members given and keeps the others; the strategy of captured calls goes before " +
				"the one said here. A member of the wrong type counts as not there: an issue says so, and " +
				"invalid_members shows it. A body that is no run, and a step number 0, are a 400. It is a 201 if " +
				"the run or a step is new.",
			Example: `{"run_id": "r1", "original_question": "How high is Ararat?", "reasoning_steps": [` +
				`{"step_number": 1, "tool": "search", "source_attributions": [{"document_id": "d1"}]}]}`,
		}),
		httpx.JSON(httpx.Route{
			Pattern: "/v1/runs/{id}", Scope: read, Params: slices.Concat(showParams(), httpx.PageParams(maxLimit)),
			Doc: "Returns a run with its latest steps, by number: each one's answer, or what was recorded of it. " +
				"Several calls of one step have one element each, and so has what was recorded of it. A step " +
				"whose answer was deleted is gone; after of others still names it.",
		}, a.run),
		recording(httpx.Route{
			Pattern: "/v1/runs/{id}/steps", Handle: a.newSteps, Request: trail.Step{}, Many: true,
			Body: []string{"application/jsonl"},
			Doc: "Records a step of a run, or an array of them. They may come in any order, before their run and " +
				"after its end, and again. A step is known by its id, else its number; other content replaces it " +
				"as a whole. With neither it gets the next number, which yields to a later step that claims it; " +
				"one with only an id is numbered on reading, by its time. A number taken by another step, or a " +
				"step twice with different content, is a 409. A step with the number of a captured call is one " +
				"step with it, and what was recorded goes first.",
			Example: `{"step_number": 1, "question": "How high is Ararat?", "intermediate_answer": "5,137 m"}`,
		}),
		recording(httpx.Route{
			Pattern: "/v1/runs/{id}/finish", Handle: a.finishRun, Request: trail.Trail{}, Body: []string{""},
			Doc: "Records that a run has ended, and its final answer: a text as final_answer, or the answer_id of " +
				"a captured one, or neither. Any other member of a run may be there; finished_at defaults to what " +
				"was said before, else now. It may be said again, with another answer too; the same final_answer " +
				"keeps the citations of a recorded answer.",
			Example: `{"final_answer": "Ararat is 5,137 m high."}`,
		}),
		{
			Pattern: "/v1/runs/{id}/summary", Scope: read, Params: summaryParams(), Handle: a.summary,
			Doc: "Returns what a run rested on, and which passages and steps each sentence of its answer rests on. " +
				"The final answer is the recorded one, with its citations if a call of the run said the same, " +
				"else the last captured call's. as=prov and as=otlp are JSON of those formats, with whole " +
				"passages unless excerpt is 0. Issues of the store are calls-left-out (over 10,000 captured calls " +
				"or 64 MiB; the latest are there) and answer-missing (the final answer was deleted). Four are " +
				"made at a time; others wait up to 20 seconds, then a 503. One may take two minutes.",
			Response: &trail.Summary{}, Media: append(mediaTypes(text.Strings(biblio.Formats())), "application/json"),
		},
		{
			Pattern: "/v1/runs/{id}/events", Access: httpx.ByStream, Scope: read, Handle: a.events,
			Doc: "Streams what happens to a run, as server-sent events: docs/events.md describes them.",
			Params: append(
				httpx.Texts("access_token: a stream token, from POST /v1/stream-token"),
				httpx.Number("after: the number of the last event that the reader has", 0, 0, 1<<63-1)),
			Media: []string{"text/event-stream"}, Problems: []string{gateway.CodeTooMany},
		},
		httpx.JSON(httpx.Route{
			Pattern: "/v1/runs/{id}/manifest", Scope: read,
			Doc: "Returns where the published manifest of a run's final answer is. It is pending until the run has " +
				"ended.",
		}, a.runManifest),
		{
			Method: "POST", Pattern: "/v1/stream-token", Scope: read, Handle: a.streamToken, Status: []int{201},
			Doc: "Makes a token that opens the events of one run for five minutes, for the URL of an EventSource. " +
				"An open stream outlives it, until the access token it was made with is revoked. Nodes with the " +
				"same IBID_STREAM_KEY, or else IBID_BOOTSTRAP_TOKEN, accept each other's; otherwise only the node " +
				"that made it.",
			Request: streamOrder{}, Response: streamTokenBody{}, Example: `{"run": "r1"}`,
		},
		{
			Method: "POST", Pattern: tracesPath, Scope: write, Handle: a.traces, Fail: writeStatus,
			Doc: "Records the spans of agents' runs, by OTLP/HTTP. A trace is a run whose id is the trace id, or " +
				"the attribute ibid.run; spans that belong to no run are accepted and not kept. partial_success " +
				"counts spans that cannot be stored. Errors are a google.rpc.Status in the encoding of the " +
				"request; of the statuses that exporters retry, only 503 is sent.",
			Body: []string{otel.JSON, otel.Protobuf}, MaxBody: maxRun, Media: []string{otel.JSON, otel.Protobuf},
		},
	}
}

// verifyRoutes are about whether citations are right.
func (a *API) verifyRoutes() []httpx.Route {
	return []httpx.Route{
		{
			Method: "POST", Pattern: "/v1/verify", Scope: store.ScopeVerify, Params: verifyParams(), Handle: a.verify,
			Doc: "Verifies where an answer says it comes from: its manifests, their signatures, and each source as " +
				"it is now. The body is an object with one of url, manifest, bundle, document and response, or " +
				"one of these things itself; then the query parameters say the rest. A report is a 200, whatever " +
				"it says; 422: the body is none of these. After 60 seconds it is a 503, and what was found is " +
				"remembered for the next with a max_age. Four are made at a time; one more is a 429. Failures " +
				"become incidents of the tenant, the first 1,000 of a report.",
			Request: verifyOrder{}, Response: verify.Report{}, MaxBody: maxDecode,
			Body:     []string{"application/octet-stream"},
			Problems: []string{gateway.CodeUnreadable, gateway.CodeTooMany},
			Example:  `{"url": "https://agent.example/answer", "trust": ["agent.example"]}`,
		},
		httpx.List(httpx.Route{
			Pattern: "/v1/incidents", Scope: store.ScopeRead,
			Doc: "Lists what failed when something was verified or a source was read again, the last first. Each " +
				"is there once and for good: incident_id is a record's hash, prev that of the one before. An " +
				"empty string is not known.",
			Params: append(httpx.Texts(
				"manifest: the SHA-256 of a manifest, hexadecimal", "source: the address of a source",
				"status: a status word", "answer: the id of an answer"), httpx.PageParams(defaultLimit)...),
		}, "incidents", &a.reader, a.incidents, httpx.Same),
		httpx.List(httpx.Route{
			Pattern: "/v1/alerts", Scope: store.ScopeRead,
			Doc: "Lists what the operator should look at, the last first: each thing once. They are kept for 90 " +
				"days. What is the whole server's is the tenant default's.",
			Params: slices.Concat([]httpx.Param{
				httpx.AnyOf("kind: what it is about; without it, all", text.Strings(store.AlertKinds())...),
				httpx.OneOf("seen: all, or no for those that nobody has seen", "all", "no"),
			}, httpx.PageParams(defaultLimit)),
		}, "alerts", &a.reader, a.alerts, httpx.Same),
		{
			Method: "POST", Pattern: "/v1/alerts/{id}", Scope: store.ScopeWrite, Handle: a.seeAlert,
			Doc:     "Notes that somebody has seen an alert, or that nobody has.",
			Request: alertOrder{}, Response: store.Alert{}, Problems: []string{gateway.CodeNotFound},
			Example: `{"seen": true}`,
		},
	}
}

// tokenRoutes are the administrators'.
func (a *API) tokenRoutes() []httpx.Route {
	const admin = store.ScopeAdmin
	return []httpx.Route{
		httpx.JSON(httpx.Route{
			Pattern: "/v1/tokens", Scope: admin, Tenant: httpx.AnyTenant,
			Doc: "Lists tokens, the oldest first, revoked ones too.",
		}, a.tokens),
		{
			Method: "POST", Pattern: "/v1/tokens", Scope: admin, Tenant: httpx.AnyTenant, Handle: a.newToken,
			Doc: "Makes a token. Its secret is shown this once; only its hash is kept. The tenant defaults to the " +
				"caller's own; with publish, what comes by the token is published unless told otherwise.",
			Request: tokenOrder{}, Response: tokenBody{}, Status: []int{201},
			Example: `{"name": "ci", "scopes": ["proxy", "read"]}`,
		},
		{
			Method: "DELETE", Pattern: "/v1/tokens/{id}", Scope: admin, Tenant: httpx.AnyTenant,
			Doc: "Revokes a token.", Handle: a.revokeToken, Status: []int{204},
		},
		httpx.List(httpx.Route{
			Pattern: "/v1/audit", Scope: admin, Tenant: httpx.AnyTenant,
			Doc: "Lists what administrators did, the last first. Each entry has the hash of the one before.",
			Params: append(
				httpx.Texts("tenant: whose audit log; without it, that of the access token's tenant"),
				httpx.PageParams(defaultLimit)...),
		}, "entries", &a.reader, a.auditLog, httpx.Same),
	}
}

// operatorRoutes are for operators, and say what there is.
func (a *API) operatorRoutes() []httpx.Route {
	const open, none = httpx.Open, httpx.NoTenant
	words := []string{"text/plain; charset=utf-8"}
	return []httpx.Route{
		{
			Pattern: "/healthz", Access: open, Tenant: none, Response: map[string]string{},
			Doc: "Answers as long as the process does.",
			Handle: func(w *httpx.Reply, _ *httpx.Request) error {
				return w.JSON(http.StatusOK, map[string]string{"status": "ok"})
			},
		},
		{
			Pattern: "/readyz", Access: open, Tenant: none, Handle: a.ready, Response: readiness{},
			Doc: "Says whether answers can be captured: 200 if they can, also where the store or the bus is away. " +
				"Calls then succeed, and their answers wait in the journal.",
			Status: []int{200, 503},
		},
		{
			Pattern: "/metrics", Access: open, Tenant: none, Handle: a.showMetrics, Media: []string{"text/plain"},
			Doc: "Returns the metrics, as Prometheus reads them.", Problems: []string{gateway.CodeNotFound},
		},
		{
			Pattern: "/v1", Access: open, Tenant: none, Handle: a.index, Media: words,
			Doc: "Lists the endpoints, as text.",
		},
		{
			Pattern: "/v1/openapi.json", Access: open, Tenant: none,
			Response: map[string]any{}, Status: []int{200, 304},
			Doc: "Returns this description of the API, as OpenAPI 3.1.",
			Handle: func(w *httpx.Reply, r *httpx.Request) error {
				w.Tagged(r, "application/json", openAPI)
				return nil
			},
		},
		{ // where no page is served, and for programs
			Pattern: "/{$}", Access: open, Tenant: none, Handle: a.index, Media: words,
			Doc: "Lists the endpoints, as text. A browser gets the page.",
		},
	}
}

// publicRoutes are what is published. Everybody may read it, under any name and from any page. A later revision of a
// run's manifest, and proofs, have more behind the name.
func (a *API) publicRoutes() []httpx.Route {
	all := []httpx.Route{
		{
			Pattern: "/runs/{pub}/cite/{answer_id}", Media: []string{manifest.ContentType, "text/plain; charset=utf-8"},
			Status: []int{200, 202, 304},
			Doc: "Returns the manifest of an answer; with .tlog-proof behind it, the proof that it is logged. 202 " +
				"while it is being built.",
		},
		{
			Pattern: "/runs/{pub}/{cite}", Media: []string{manifest.ContentType, "text/plain; charset=utf-8"},
			Status: []int{200, 202, 304}, Doc: "Returns the manifest of a run's final answer: cite is the word cite.",
		},
		{
			Pattern: manifest.DiscoveryPath, Media: []string{manifest.ContentType},
			Doc: "Says who publishes, at which level, and where keys, schema and log are.",
		},
		{
			Pattern: manifest.DirectoryPath, Media: []string{keyring.MediaType},
			Doc: "Returns the keys that sign now, as a JWK Set.",
		},
		{
			Pattern: manifest.KeysPath, Media: []string{keyring.MediaType},
			Doc: "Returns the keys that sign now, and those that once did.",
		},
		{
			Pattern: manifest.SchemaPath, Media: []string{"application/schema+json"},
			Doc: "Returns the JSON Schema of manifests.",
		},
		{
			Pattern: manifest.LogPath + "{path...}",
			Media:   []string{"text/plain; charset=utf-8", "application/octet-stream"},
			Doc:     "Returns the transparency log, by the C2SP specification of tiled logs.",
		},
	}
	for i := range all {
		rt := &all[i]
		rt.Access, rt.Tenant, rt.Handle = httpx.Public, httpx.Published, a.published
		rt.Problems = []string{gateway.CodeNotFound, gateway.CodeUnavailable}
	}
	return all
}
