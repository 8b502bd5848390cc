package api

import (
	_ "embed"
	"slices"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/biblio"
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

// describe answers with the description of the API.
func (a *API) describe(w *httpx.Reply, r *httpx.Request) error {
	w.Tagged(r, "application/json", openAPI)
	return nil
}

// routes are the endpoints. Each is a section of docs/http.md.
func (a *API) routes() []httpx.Route {
	return slices.Concat(
		a.answerRoutes(), a.runRoutes(), a.verifyRoutes(), a.tokenRoutes(), a.operatorRoutes(), a.publicRoutes())
}

// showParams are the parameters of what has answer documents in it.
func showParams() []httpx.Param {
	return []httpx.Param{unitParam(), httpx.OneOf(
		"style: how cited_text is written", text.Strings(ibid.Styles())...)}
}

// formParam is the parameter of what writes an answer in one of several forms, whose media types are formMedia.
func formParam() httpx.Param {
	return httpx.OneOf("as: the answer document, the text with citations in a style, a bibliography, "+
		"or the shape of another program", forms()...)
}

func formMedia() []string { return mediaTypes(forms()) }

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
	show, form := showParams(), formParam()
	as, texts := httpx.OneOf, httpx.Texts
	return []httpx.Route{
		{
			Method: "POST", Pattern: "/v1/decode", Scope: read, Tenant: httpx.NoTenant, Handle: a.decode,
			Doc: "Decodes a provider's response. The body is the response as it came, or a form with the parts " +
				"response, request and documents. Nothing is stored.",
			Body: []string{"application/octet-stream", "multipart/form-data"}, MaxBody: maxDecode,
			Response: ibid.Document{}, Media: formMedia(), Problems: []string{gateway.CodeUnreadable},
			Params: slices.Concat([]httpx.Param{httpx.AnyOf(
				"format: the format of the response; without it, it is recognised", ibid.Formats()...), form}, show),
		},
		{
			Method: "POST", Pattern: "/v1/prompt", Scope: read, Handle: a.prompt, MaxBody: maxPrompt,
			Doc: "Writes documents, and sources of stored answers, as the XML that providers recommend for passages " +
				"in a prompt, escaped.",
			Request: promptRequest{}, Response: promptBody{}, Problems: []string{gateway.CodeNotFound},
		},
		httpx.List(httpx.Route{
			Pattern: "/v1/answers", Scope: read,
			Doc: "Lists answers, the last stored first.",
			Params: slices.Concat(texts(
				"q: words of the answer, of what was asked, or of the sources", "source: the URL or key of a source",
				"conversation: the id of a conversation", "run: the id of a run",
				"verification: a status that a citation of the answer has, or failed for all that count as failures",
			), page, show),
		}, "answers", &a.reader, a.answers, showListedCall),
		{
			Pattern: "/v1/answers/{id}", Scope: read, Handle: a.answer, Response: answerBody{},
			Doc:    "Returns an answer, as soon as it was captured.",
			Params: slices.Concat([]httpx.Param{form}, show), Media: formMedia(), Status: []int{200, 304},
		},
		{
			Method: "DELETE", Pattern: "/v1/answers/{id}", Scope: write, Handle: a.deleteAnswer, Status: []int{204},
			Doc: "Deletes an answer, and what was derived from it.",
		},
		httpx.JSON(httpx.Route{
			Pattern: "/v1/answers/{id}/manifest", Scope: read,
			Doc: "Returns where the published manifest of an answer is.",
		}, a.answerManifest),
		httpx.List(httpx.Route{
			Pattern: "/v1/conversations", Scope: read, Params: page,
			Doc: "Lists conversations, the one with the latest answer first.",
		}, "conversations", &a.reader, a.conversations, showListedConversation),
		{
			Pattern: "/v1/conversations/{id}", Scope: read, Handle: a.conversation, Response: conversationBody{},
			Doc: "Returns the latest messages of a conversation, with citations numbered as they were shown. With " +
				"as=ui they are a list of the AI SDK's UI messages, and a Link header leads to older ones.",
			Params: slices.Concat([]httpx.Param{as("as: the shape of the messages", asJSON, asUI)}, long, show),
			Media:  []string{"application/json"},
		},
		httpx.List(httpx.Route{
			Pattern: "/v1/sources", Scope: read,
			Doc:    "Lists the answers that have a source. One of url and id is needed.",
			Params: slices.Concat(texts("url: the address of the source", "id: its id or key"), page),
		}, "sources", &a.reader, a.sources, showUse),
		httpx.List(httpx.Route{
			Pattern: "/v1/sources/versions", Scope: read,
			Doc:    "Lists the versions of a source that were read, the latest first.",
			Params: slices.Concat(texts("url: the address of the source; needed"), page),
		}, "versions", &a.reader, a.versions, showVersion),
		{
			Pattern: "/v1/copies/{hash}", Scope: read, Handle: a.copyOf,
			Doc:      "Returns the octets of a source as they were read.",
			Params:   []httpx.Param{as("as: the octets, or a WARC file with its record", asOctets, asWARC)},
			Media:    []string{"application/octet-stream", "application/gzip"},
			Problems: []string{gateway.CodeNotFound}, Status: []int{200, 304},
		},
		{
			Pattern: "/v1/feedback", Scope: read, Handle: a.feedback, Response: feedbackList{},
			Doc: "Lists feedback, the last first, and counts all of it.",
			Params: slices.Concat(
				[]httpx.Param{as("as: a page as JSON, or all of it as rows", asJSON, asCSV, asJSONL)},
				texts("answer: the id of an answer", "run: the id of a run", "source: the id or key of a source",
					"strategy: name@version of a run's strategy"), page),
			Media: []string{"application/jsonl", "text/csv; charset=utf-8; header=present"},
		},
		{
			Method: "POST", Pattern: "/v1/feedback", Scope: write, Handle: a.newFeedback, Status: []int{201},
			Doc: "Stores what a person says of a citation, an answer, or a source of a run: a verdict with an " +
				"answer_id, or a relevance with a run and a source.",
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
			Doc: "Lists runs, the one with the latest call or record first.",
		}, "runs", &a.reader, a.runs, showListedRun),
		recording(httpx.Route{
			Pattern: "/v1/runs", Handle: a.newRun, Request: trail.Trail{}, Body: []string{"application/jsonl"},
			Doc: "Records a run: what is known at its beginning, or all of it. Without run_id it gets one. " +
				"A member of the wrong type counts as not there: an issue says so, and invalid_members shows it.",
			Example: `{"run_id": "r1", "original_question": "How high is Ararat?", "reasoning_steps": [` +
				`{"step_number": 1, "tool": "search", "source_attributions": [{"document_id": "d1"}]}]}`,
		}),
		httpx.JSON(httpx.Route{
			Pattern: "/v1/runs/{id}", Scope: read, Params: slices.Concat(showParams(), httpx.PageParams(maxLimit)),
			Doc: "Returns a run with its latest steps: each one's answer, or what was recorded of it.",
		}, a.run),
		recording(httpx.Route{
			Pattern: "/v1/runs/{id}/steps", Handle: a.newSteps, Request: trail.Step{}, Many: true,
			Body: []string{"application/jsonl"},
			Doc: "Records a step of a run, or an array of them. A step that was recorded before, by its id or else " +
				"its number, is replaced.",
			Example: `{"step_number": 1, "question": "How high is Ararat?", "intermediate_answer": "5,137 m"}`,
		}),
		recording(httpx.Route{
			Pattern: "/v1/runs/{id}/finish", Handle: a.finishRun, Request: trail.Trail{}, Body: []string{""},
			Doc: "Records that a run has ended, and its final answer: a text as final_answer, or the answer_id of " +
				"a captured one.",
			Example: `{"final_answer": "Ararat is 5,137 m high."}`,
		}),
		{
			Pattern: "/v1/runs/{id}/summary", Scope: read, Params: summaryParams(), Handle: a.summary,
			Doc: "Returns what a run rested on, and which passages and steps each sentence of its answer rests on. " +
				"as=prov and as=otlp are JSON of those formats.",
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
			Doc: "Returns where the published manifest of a run's final answer is.",
		}, a.runManifest),
		{
			Method: "POST", Pattern: "/v1/stream-token", Scope: read, Handle: a.streamToken, Status: []int{201},
			Doc:     "Makes a token that opens the events of one run for five minutes, for the URL of an EventSource.",
			Request: streamOrder{}, Response: streamTokenBody{}, Example: `{"run": "r1"}`,
		},
		{
			Method: "POST", Pattern: tracesPath, Scope: write, Handle: a.traces, Fail: writeStatus,
			Doc: "Records the spans of agents' runs, by OTLP/HTTP. Errors are a google.rpc.Status in the encoding " +
				"of the request.",
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
				"it is now. The body is an object with one of url, manifest, bundle, document and response, or one " +
				"of these things itself; then the query parameters say the rest. A report is a 200, whatever it says.",
			Request: verifyOrder{}, Response: verify.Report{}, MaxBody: maxDecode,
			Body:     []string{"application/octet-stream"},
			Problems: []string{gateway.CodeUnreadable, gateway.CodeTooMany},
			Example:  `{"url": "https://agent.example/answer", "trust": ["agent.example"]}`,
		},
		httpx.List(httpx.Route{
			Pattern: "/v1/incidents", Scope: store.ScopeRead,
			Doc: "Lists what failed when something was verified or a source was read again, the last first.",
			Params: append(httpx.Texts(
				"manifest: the SHA-256 of a manifest, hexadecimal", "source: the address of a source",
				"status: a status word", "answer: the id of an answer"), httpx.PageParams(defaultLimit)...),
		}, "incidents", &a.reader, a.incidents, showIncident),
		httpx.List(httpx.Route{
			Pattern: "/v1/alerts", Scope: store.ScopeRead,
			Doc: "Lists what the operator should look at, the last first: each thing once.",
			Params: slices.Concat([]httpx.Param{
				httpx.AnyOf("kind: what it is about; without it, all", text.Strings(store.AlertKinds())...),
				httpx.OneOf("seen: all, or no for those that nobody has seen", "all", "no"),
			}, httpx.PageParams(defaultLimit)),
		}, "alerts", &a.reader, a.alerts, showAlert),
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
			Doc:     "Makes a token. Its secret is shown this once.",
			Request: tokenOrder{}, Response: tokenBody{}, Status: []int{201},
			Example: `{"name": "ci", "scopes": ["proxy", "read"]}`,
		},
		{
			Method: "DELETE", Pattern: "/v1/tokens/{id}", Scope: admin, Tenant: httpx.AnyTenant,
			Doc: "Revokes a token.", Handle: a.revokeToken, Status: []int{204},
		},
	}
}

// operatorRoutes are for operators, and say what there is.
func (a *API) operatorRoutes() []httpx.Route {
	const open, none = httpx.Open, httpx.NoTenant
	words := []string{"text/plain; charset=utf-8"}
	return []httpx.Route{
		{
			Pattern: "/healthz", Access: open, Tenant: none, Handle: a.alive, Response: map[string]string{},
			Doc: "Answers as long as the process does.",
		},
		{
			Pattern: "/readyz", Access: open, Tenant: none, Handle: a.ready, Response: readiness{},
			Doc:    "Says whether answers can be captured: 200 if they can, also where the store or the bus is away.",
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
			Pattern: "/v1/openapi.json", Access: open, Tenant: none, Handle: a.describe,
			Response: map[string]any{}, Status: []int{200, 304},
			Doc: "Returns this description of the API, as OpenAPI 3.1.",
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
