package api

import (
	"bytes"
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
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/trail/otel"
	"github.com/ibidhq/ibid/verify"
)

// Routes returns the endpoints of an API as data; their handlers must not be called.
func Routes() []httpx.Route { return (&API{}).routes() }

// openAPI describes everything ibid serves. Package server generates it from the route tables.
//
//go:embed openapi.json
var openAPI []byte

// answerSchema is the JSON Schema of the answer document. It is generated from the type.
//
//go:embed answer.schema.json
var answerSchema []byte

// AnswerSchema returns the JSON Schema of the answer document, as it is served at /v1/schema/answer.json.
func AnswerSchema() []byte { return bytes.Clone(answerSchema) }

// routes are the endpoints. docs/http.md lists them.
func (a *API) routes() []httpx.Route {
	return slices.Concat(
		a.answerRoutes(), a.claimRoutes(), a.runRoutes(), a.verifyRoutes(), a.tokenRoutes(), a.operatorRoutes(),
		a.publicRoutes())
}

// showParams are the parameters of every endpoint that returns answer documents.
func showParams() []httpx.Param {
	return []httpx.Param{
		httpx.AnyOf("unit: the unit of offsets; defaults to UTF-8 bytes", text.Strings(ibid.Units())...),
		httpx.OneOf("style: the style of cited_text; only with as=json", text.Strings(ibid.Styles())...),
		httpx.AnyOf("numbers: which numbers sources get: by first use, or those that the model wrote; by default the "+
			"model's, where they can be kept", text.Strings(ibid.AllNumbers())...),
	}
}

// answerForms are the forms in which an answer can be written.
func answerForms() []string {
	return slices.Concat(
		[]string{asJSON}, text.Strings(ibid.Styles()), text.Strings(biblio.Formats()), text.Strings(export.Formats()))
}

// asForm is the parameter of every endpoint that writes an answer in a form.
func asForm() httpx.Param {
	return httpx.OneOf("as: the answer document, the text with citations in a style, a bibliography, or another "+
		"program's format", answerForms()...)
}

// mediaTypes returns the media types of the forms, without duplicates.
func mediaTypes(forms []string) []string {
	var media []string
	for _, form := range forms {
		media = append(media, MediaType(form))
	}
	slices.Sort(media)
	return slices.Compact(media)
}

// answerRoutes are the endpoints for answers, their conversations and their sources.
func (a *API) answerRoutes() []httpx.Route {
	const read, write = store.ScopeRead, store.ScopeWrite
	page, long := httpx.PageParams(defaultLimit), httpx.PageParams(maxLimit)
	as, texts, show := httpx.OneOf, httpx.Texts, showParams()
	forms, form := answerForms(), asForm()
	return []httpx.Route{
		{
			Method: "POST", Pattern: "/v1/decode", Scope: read, Tenant: httpx.NoTenant, Handle: a.decode,
			Doc: "Decodes a provider's response. The body is the response exactly as received, whatever its " +
				"Content-Type, or a form with the parts response, request and documents (a JSON array of strings, " +
				"flat objects, or objects with id and data). Nothing is stored, and answer_id is null. A truncated " +
				"response returns 200 with complete false. A provider's error returns 200 with error, or 422 if the " +
				"form in as cannot represent it. The body may be compressed; the size limit also applies after " +
				"decompression. Decoding may take up to two minutes.",
			Body: []string{"application/octet-stream", "multipart/form-data"}, MaxBody: maxDecode,
			Response: ibid.Document{}, Media: mediaTypes(forms), Problems: []string{gateway.CodeUnreadable},
			Params: slices.Concat([]httpx.Param{httpx.AnyOf(
				"format: the format of the response; detected by default", ibid.Formats()...), form}, show),
		},
		{
			Method: "POST", Pattern: "/v1/prompt", Scope: read, Handle: a.prompt, MaxBody: maxPrompt,
			Doc: "Formats documents, and sources of stored answers, as the XML that providers recommend for passages " +
				"in a prompt, escaped. Each becomes a result with file_id, filename and url, and one content for " +
				"each passage. If several share a file_id, the first keeps it and the others get the suffix -2, -3 " +
				"and so on. A source requested twice appears once, as the latest answer has it. At most 100 sources; " +
				"an unknown one is a 404.",
			Request: promptRequest{}, Response: promptBody{}, Problems: []string{gateway.CodeNotFound},
		},
		httpx.List(httpx.Route{
			Pattern: "/v1/answers", Scope: read,
			Doc: "Lists answers, most recently stored first.",
			Params: slices.Concat(texts(
				"q: words that must all occur in the answer, its prompt, or its quotes and titles",
				"source: the URL of a source, in any form, or its key",
				"conversation: the id of a conversation", "run: the id of a run",
				"verification: failed, unverifiable, passed, unchecked, or the status of any citation in the answer",
			), page, show),
		}, "answers", &a.reader, httpx.ByQuery(a.store.Calls), showListedCall),
		{
			Method: "POST", Pattern: "/v1/answers", Scope: write, Handle: a.newAnswer, Status: []int{201},
			Doc: "Stores an answer that did not come through the gateway: a provider's response, as for POST " +
				"/v1/decode, an answer document, or text with documents, whose marks such as [1] cite the documents. " +
				"It is then an answer like any other. The headers Ibid-Run, Ibid-Step, Ibid-Conversation, " +
				"Ibid-Follows, Ibid-Agent and Ibid-Publish are those of the pass-through. Of a document only " +
				"version, unit, text, sources and citations are needed; one that contradicts itself is a 422. Over " +
				"the tenant's quota it is a 413.",
			Request: givenOrder{}, Body: []string{"application/octet-stream", "multipart/form-data"},
			MaxBody: maxDecode, Response: answerBody{},
			Problems: []string{gateway.CodeUnreadable, gateway.CodeTooLarge, gateway.CodeScope},
			Params: slices.Concat([]httpx.Param{httpx.AnyOf(
				"format: the format of the response; detected by default", ibid.Formats()...)}, show),
			Example: `{"text": "Herons eat fish [1].", ` +
				`"documents": [{"id": "a", "title": "Birds", "text": "Herons eat fish."}]}`,
		},
		{
			Pattern: "/v1/answers/{id}", Scope: read, Handle: a.answer, Response: answerBody{},
			Doc: "Returns an answer, available as soon as its client has received the end. Sources are numbered for " +
				"this answer alone. The member call describes how the answer was produced: step is null until the " +
				"answer is stored; " +
				"after lists the steps it builds on, null meaning the previous one. A citation's verification is its " +
				"worst check result.",
			Params: slices.Concat([]httpx.Param{form}, show), Media: mediaTypes(forms), Status: []int{200, 304},
		},
		{
			Method: "DELETE", Pattern: "/v1/answers/{id}", Scope: write, Handle: a.deleteAnswer, Status: []int{204},
			Doc: "Deletes an answer and everything derived from it. Its sources keep their numbers in its " +
				"conversation. Returns 503 for a captured answer that is not stored yet because the store is " +
				"unavailable; retry later.",
		},
		httpx.JSON(httpx.Route{
			Pattern: "/v1/answers/{id}/manifest", Scope: read,
			Doc: "Returns the location of the latest revision of an answer's published manifest. Until the manifest " +
				"is built, its state is pending and the hash of its body null. The hexadecimal salt, which auditors " +
				"need to recompute the hashes of private inputs and outputs, is returned only to callers with the " +
				"scope admin or publish.",
		}, a.answerManifest),
		httpx.List(httpx.Route{
			Pattern: "/v1/conversations", Scope: read, Params: page,
			Doc: "Lists conversations, the one with the latest answer first.",
		}, "conversations", &a.reader, httpx.ByQuery(a.store.Conversations), showListedConversation),
		{
			Pattern: "/v1/conversations/{id}", Scope: read, Handle: a.conversation,
			Response: conversationBody{},
			Doc: "Returns the latest messages of a conversation, oldest first, with citations numbered as they were " +
				"shown. Messages that clients repeat with every call appear once. Numbers never change; numbering " +
				"maps source keys to them, including sources of deleted answers. With as=ui the response is an array " +
				"of the AI SDK's UI messages with UTF-16 offsets, ending with the questions still being answered; a " +
				"Link header leads to older messages.",
			Params: slices.Concat([]httpx.Param{as("as: the format of the messages", asJSON, asUI)}, long, show),
			Media:  []string{"application/json"},
		},
		httpx.List(httpx.Route{
			Pattern: "/v1/sources", Scope: read,
			Doc: "Lists the answers that have a source, most recently stored first. Requires url or id; with both, " +
				"either may match. If an answer found the source but did not cite it, citations is empty.",
			Params: slices.Concat(texts("url: the URL of the source", "id: its id or key"), page),
		}, "sources", &a.reader, a.sources, showUse),
		httpx.List(httpx.Route{
			Pattern: "/v1/sources/versions", Scope: read,
			Doc: "Lists the versions of a source that were fetched, latest first. A change of bytes, media type, " +
				"status or final URL makes a new version. A kept version has a copy.",
			Params: slices.Concat(texts("url: the URL of the source; required"), page),
		}, "versions", &a.reader, a.versions, showVersion),
		{
			Pattern: "/v1/copies/{hash}", Scope: read, Handle: a.copyOf,
			Doc: "Returns the bytes of a source as they were fetched, by the hash of a version. They are served as " +
				"application/octet-stream whatever their original type, so that a browser never renders a third " +
				"party's page under ibid's origin. as=warc returns a compressed WARC 1.1 file with the response's " +
				"headers and origin. 404 if the tenant never fetched it or it is no longer kept.",
			Params:   []httpx.Param{as("as: the bytes, or a WARC file with its record", asOctets, asWARC)},
			Media:    []string{"application/octet-stream", "application/gzip"},
			Problems: []string{gateway.CodeNotFound}, Status: []int{200, 304},
		},
		{
			Pattern: "/v1/feedback", Scope: read, Handle: a.feedback, Stays: true, Response: feedbackList{},
			Doc: "Lists feedback, most recent first, with counts over all of it. csv and jsonl return everything " +
				"from cursor on, one row per source, adding source_title, retriever_score (the relevance reported by " +
				"the step's search or the provider), score_origin (which of the two) and rank, its place in the " +
				"results. A verdict's row has the answer's step and the key of a source of the citation. Unknown " +
				"values are empty or null; texts that a spreadsheet would run as a formula get an apostrophe. Runs " +
				"over 8 MiB are not searched.",
			Params: slices.Concat(
				[]httpx.Param{as("as: one page as JSON, or everything as rows", asJSON, asCSV, asJSONL)},
				texts("answer: the id of an answer", "run: the id of a run", "source: the id or key of a source",
					"strategy: the name@version of a run's strategy"), page),
			Media: []string{"application/jsonl", "text/csv; charset=utf-8; header=present"},
		},
		{
			Method: "POST", Pattern: "/v1/feedback", Scope: write, Handle: a.newFeedback, Status: []int{201},
			Doc: "Stores a person's feedback on a citation, an answer, or a source of a run: a verdict with an " +
				"answer_id, or a relevance with a run and a source. If answer_id and run are both given, the run " +
				"must be the answer's. A person's latest feedback on a subject counts. Feedback is deleted with its " +
				"answer or run.",
			Request: feedbackOrder{}, Response: feedbackBody{}, Problems: []string{gateway.CodeNotFound},
			Example: `{"by": "ann", "answer_id": "ans_1", "citation": "c-1", "verdict": "wrong-source"}`,
		},
	}
}

// claimRoutes are the endpoints that compare texts in requests. They store nothing.
func (a *API) claimRoutes() []httpx.Route {
	return []httpx.Route{
		{
			Method: "POST", Pattern: "/v1/check", Scope: store.ScopeRead, Tenant: httpx.NoTenant, Handle: a.check,
			Doc: "Checks a claim against passages, which together may support it, or against whole texts, the " +
				"sources. Nothing is fetched, and words are compared: no judge is asked. The body is one claim, or " +
				"JSON lines with one each; the response is likewise one result, or JSON lines in the same order, in " +
				"which a line that cannot be read has the member error. At most 10,000 lines. Evidence in a source " +
				"names it, and has offsets in its text.",
			Request: support.GivenClaim{}, Body: []string{asLines}, MaxBody: maxCheck,
			Response: support.ClaimVerdict{}, Media: []string{asLines},
			Example: `{"claim": "Herons eat fish.", "passages": ["Herons eat fish and frogs."]}`,
		},
		{
			Method: "POST", Pattern: "/v1/attribute", Scope: store.ScopeRead, Tenant: httpx.NoTenant,
			Handle: a.attribute,
			Doc: "Finds citations for an answer: for each sentence that has none, the passages of the sources that " +
				"support it, compared by words. Marks such as [1] and links in the answer that name a source are " +
				"citations already. Nothing is fetched or stored. The response is the answer document with the " +
				"member attribution, which lists the sentences without a source and those that a source contradicts.",
			Request: attributeOrder{}, MaxBody: maxAttribute,
			Response: attributedBody{}, Media: mediaTypes(answerForms()),
			Params:   slices.Concat([]httpx.Param{asForm()}, showParams()),
			Problems: []string{gateway.CodeUnreadable},
			Example:  `{"answer": "Herons eat fish.", "sources": [{"id": "a", "text": "Herons eat fish and frogs."}]}`,
		},
		{
			Method: "POST", Pattern: "/v1/trail", Scope: store.ScopeRead, Tenant: httpx.NoTenant, Handle: a.trail,
			Doc: "Returns the summary of the run in the body, as for a recorded run; nothing is stored. The body is " +
				"a run in any form that POST /v1/runs accepts, or an OTLP trace request as JSON with one run. " +
				"as=prov and as=otlp return JSON in those formats, a style such as markdown the final answer with " +
				"its citations and sources, or 422 if there is none. Four summaries are computed at a time; other " +
				"requests wait up to 20 seconds, then get a 503.",
			Request: trail.Trail{}, Body: []string{asLines}, MaxBody: maxRun, Params: summaryParams(),
			Response: &trail.Summary{}, Media: mediaTypes(summaryForms()), Problems: []string{gateway.CodeUnreadable},
			Example: `{"original_question": "How high is Ararat?", "final_answer": "Ararat is 5,137 m high.", ` +
				`"reasoning_steps": [{"step_number": 1, "tool": "search", "source_attributions": [` +
				`{"document_id": "d1", "excerpt": "Ararat: 5,137 m"}]}]}`,
		},
		{
			Method: "POST", Pattern: "/v1/render", Scope: store.ScopeRead, Tenant: httpx.NoTenant, Handle: a.render,
			Doc: "Writes an answer document in another form, unit or style. The body is the document, as the other " +
				"endpoints return it; nothing is stored. A body that is none is a 422.",
			Body: []string{"application/json"}, MaxBody: maxDecode,
			Response: ibid.Document{}, Media: mediaTypes(answerForms()), Problems: []string{gateway.CodeUnreadable},
			Params: slices.Concat([]httpx.Param{asForm()}, showParams()),
		},
	}
}

// runRoutes are the endpoints for agents' runs.
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
			Doc: "Lists runs, the one with the latest call or recording first. Questions are truncated to 1 KiB.",
		}, "runs", &a.reader, httpx.ByQuery(a.store.Runs), showRun),
		recording(httpx.Route{
			Pattern: "/v1/runs", Handle: a.newRun, Request: trail.Trail{}, Body: []string{"application/jsonl"},
			Doc: "Records a run: as much as is known when it begins, or all of it. A run without run_id gets a new " +
				"one. On a known run, the members given replace the stored ones and the others are kept; a strategy " +
				"set by captured calls takes precedence. A member of the wrong type is treated as absent, reported " +
				"as an issue and kept in invalid_members. A body that is not a run, or a step number 0, is a 400. " +
				"Returns 201 if the run or a step is new.",
			Example: `{"run_id": "r1", "original_question": "How high is Ararat?", "reasoning_steps": [` +
				`{"step_number": 1, "tool": "search", "source_attributions": [{"document_id": "d1"}]}]}`,
		}),
		httpx.JSON(httpx.Route{
			Pattern: "/v1/runs/{id}", Scope: read, Params: slices.Concat(showParams(), httpx.PageParams(maxLimit)),
			Doc: "Returns a run with its latest steps, ordered by number: each step's answer, or its recording. A " +
				"step with several calls has one element for each, and one for its recording. A step whose answer " +
				"was deleted is omitted, though after of other steps may still name it.",
		}, a.run),
		recording(httpx.Route{
			Pattern: "/v1/runs/{id}/steps", Handle: a.newSteps, Request: trail.Step{}, Many: true,
			Body: []string{"application/jsonl"},
			Doc: "Records a step of a run, or an array of steps. Steps may arrive in any order, before their run and " +
				"after its end, and more than once. A step is identified by its id, else by its number; different " +
				"content replaces it as a whole. A step with neither gets the next number, which it gives up to a " +
				"later step that claims it; a step with only an id is numbered by its time when the run is read. " +
				"Using another step's number, or sending a step twice with different content, is a 409. A recorded " +
				"step with the number of a captured call is merged with it, and the recording takes precedence.",
			Example: `{"step_number": 1, "question": "How high is Ararat?", "intermediate_answer": "5,137 m"}`,
		}),
		recording(httpx.Route{
			Pattern: "/v1/runs/{id}/finish", Handle: a.finishRun, Request: trail.Trail{}, Body: []string{""},
			Doc: "Records that a run has ended, and its final answer: a text as final_answer, the answer_id of a " +
				"captured one, or neither. Any other member of a run is accepted too; finished_at defaults to the " +
				"recorded value, else now. May be called again, even with another answer; repeating the same " +
				"final_answer keeps the citations of a recorded answer.",
			Example: `{"final_answer": "Ararat is 5,137 m high."}`,
		}),
		{
			Pattern: "/v1/runs/{id}/summary", Scope: read, Params: summaryParams(), Handle: a.summary,
			Doc: "Returns the sources a run rests on, and the passages and steps behind each sentence of its answer. " +
				"The final answer is the recorded one, with citations if a call of the run gave the same text, else " +
				"the last captured call's. as=prov and as=otlp return JSON in those formats, with whole passages " +
				"unless excerpt is 0; a style such as markdown returns the final answer with its citations and " +
				"sources, or 422 if there is none. The issue calls-left-out means that the run has over 10,000 " +
				"captured calls or 64 MiB and only the latest are included; answer-missing, that its final answer " +
				"was deleted. Four summaries are computed at a time; other requests wait up to 20 seconds, then get " +
				"a 503. A summary may take up to two minutes.",
			Response: &trail.Summary{}, Media: mediaTypes(summaryForms()), Problems: []string{gateway.CodeUnreadable},
		},
		{
			Pattern: "/v1/runs/{id}/events", Access: httpx.ByStream, Scope: read, Handle: a.events, Stays: true,
			Doc: "Streams the events of a run as server-sent events, described in docs/events.md.",
			Params: append(
				httpx.Texts("access_token: a stream token, from POST /v1/stream-token"),
				httpx.Number("after: the number of the last event received", 0, 0, 1<<63-1),
				showParams()[0]),
			Media: []string{"text/event-stream"}, Problems: []string{gateway.CodeTooMany},
		},
		httpx.JSON(httpx.Route{
			Pattern: "/v1/runs/{id}/manifest", Scope: read,
			Doc: "Returns the location of the published manifest of a run's final answer. It is pending until the " +
				"run has ended.",
		}, a.runManifest),
		{
			Method: "POST", Pattern: "/v1/stream-token", Scope: read, Handle: a.streamToken, Status: []int{201},
			Doc: "Creates a token that opens the events of one run for five minutes, for use in an EventSource URL. " +
				"An open stream outlives it, until the access token that created it is revoked. Nodes with the same " +
				"IBID_STREAM_KEY, or else IBID_BOOTSTRAP_TOKEN, accept each other's tokens; otherwise only the node " +
				"that created one does.",
			Request: streamOrder{}, Response: streamTokenBody{}, Example: `{"run": "r1"}`,
		},
		{
			Method: "POST", Pattern: tracesPath, Scope: write, Handle: a.traces, Fail: writeStatus,
			Doc: "Records the spans of agents' runs, by OTLP/HTTP. A trace is a run, identified by the attribute " +
				"ibid.run or else the trace id; spans that belong to no run are accepted and dropped. " +
				"partial_success counts spans that cannot be stored. Errors are a google.rpc.Status in the encoding " +
				"of the request; of the statuses that exporters retry, only 503 is used.",
			Body: []string{otel.JSON, otel.Protobuf}, MaxBody: maxRun, Media: []string{otel.JSON, otel.Protobuf},
		},
	}
}

// verifyRoutes are the endpoints that verify citations and report failures.
func (a *API) verifyRoutes() []httpx.Route {
	return []httpx.Route{
		{
			Method: "POST", Pattern: "/v1/verify", Scope: store.ScopeVerify, Params: verifyParams(), Handle: a.verify,
			Doc: "Verifies an answer's declared sources: its manifests, their signatures, and the current state of " +
				"each source. The body is an object with one of url, manifest, bundle, document and response, or one " +
				"of these things itself, with the options as query parameters. Any report is a 200; a body that is " +
				"none of these is a 422. After 60 seconds the response is a 503; results found so far are reused by " +
				"the next request with a max_age. A tenant can run four verifications at a time; one more is a 429. " +
				"Failures become incidents of the tenant, the first 1,000 of a report.",
			Request: verifyOrder{}, Response: verify.Report{}, MaxBody: maxDecode,
			Body:     []string{"application/octet-stream"},
			Problems: []string{gateway.CodeUnreadable, gateway.CodeTooMany},
			Example:  `{"url": "https://agent.example/answer", "trust": ["agent.example"]}`,
		},
		httpx.List(httpx.Route{
			Pattern: "/v1/incidents", Scope: store.ScopeRead,
			Doc: "Lists failed verifications and failed rereads of sources, most recent first. Each is recorded once " +
				"and never changed: incident_id is the hash of the record, prev that of the previous one. An empty " +
				"string means unknown.",
			Params: append(httpx.Texts(
				"manifest: the SHA-256 of a manifest, hexadecimal", "source: the URL of a source",
				"status: a status word", "answer: the id of an answer"), httpx.PageParams(defaultLimit)...),
		}, "incidents", &a.reader, a.incidents, httpx.Same),
		httpx.List(httpx.Route{
			Pattern: "/v1/alerts", Scope: store.ScopeRead,
			Doc: "Lists what needs the operator's attention, most recent first, each thing once. Alerts are kept for " +
				"90 days. Those about the whole server belong to the tenant default.",
			Params: slices.Concat([]httpx.Param{
				httpx.AnyOf("kind: the kind of alert; all by default", text.Strings(store.AlertKinds())...),
				httpx.OneOf("seen: all, or no for unseen alerts only", "all", "no"),
			}, httpx.PageParams(defaultLimit)),
		}, "alerts", &a.reader, a.alerts, httpx.Same),
		{
			Method: "POST", Pattern: "/v1/alerts/{id}", Scope: store.ScopeWrite, Handle: a.seeAlert,
			Doc:     "Marks an alert as seen or unseen.",
			Request: alertOrder{}, Response: store.Alert{}, Problems: []string{gateway.CodeNotFound},
			Example: `{"seen": true}`,
		},
	}
}

// tokenRoutes are the endpoints for administrators.
func (a *API) tokenRoutes() []httpx.Route {
	const admin = store.ScopeAdmin
	return []httpx.Route{
		httpx.JSON(httpx.Route{
			Pattern: "/v1/tokens", Scope: admin, Tenant: httpx.AnyTenant,
			Doc: "Lists tokens, oldest first, including revoked ones.",
		}, a.tokens),
		{
			Method: "POST", Pattern: "/v1/tokens", Scope: admin, Tenant: httpx.AnyTenant, Handle: a.newToken,
			Doc: "Creates a token. The secret is shown only once; only its hash is stored. tenant defaults to the " +
				"caller's own. With publish, answers captured with the token are published unless the call says " +
				"otherwise.",
			Request: tokenOrder{}, Response: tokenBody{}, Status: []int{201},
			Example: `{"name": "ci", "scopes": ["proxy", "read"]}`,
		},
		{
			Method: "DELETE", Pattern: "/v1/tokens/{id}", Scope: admin, Tenant: httpx.AnyTenant,
			Doc: "Revokes a token.", Handle: a.revokeToken, Status: []int{204},
		},
		httpx.List(httpx.Route{
			Pattern: "/v1/audit", Scope: admin, Tenant: httpx.AnyTenant,
			Doc: "Lists the actions of administrators, most recent first. Each entry has the hash of the previous one.",
			Params: append(
				httpx.Texts("tenant: the tenant whose log is listed; defaults to the access token's"),
				httpx.PageParams(defaultLimit)...),
		}, "entries", &a.reader, a.auditLog, httpx.Same),
	}
}

// operatorRoutes are the endpoints for operators, and the lists of endpoints.
func (a *API) operatorRoutes() []httpx.Route {
	const open, none = httpx.Open, httpx.NoTenant
	words := []string{"text/plain; charset=utf-8"}
	return []httpx.Route{
		{
			Pattern: "/healthz", Access: open, Tenant: none, Response: map[string]string{},
			Doc: "Returns 200 while the process is alive.",
			Handle: func(w *httpx.Reply, _ *httpx.Request) error {
				return w.JSON(http.StatusOK, map[string]string{"status": "ok"})
			},
		},
		{
			Pattern: "/readyz", Access: open, Tenant: none, Handle: a.ready, Response: readiness{},
			Doc: "Reports whether answers can be captured. It is a 200 if they can, even while the store or the bus " +
				"is unavailable: calls succeed, and their answers wait in the journal.",
			Status: []int{200, 503},
		},
		{
			Pattern: "/metrics", Access: open, Tenant: none, Handle: a.showMetrics, Media: []string{"text/plain"},
			Doc: "Returns metrics in the Prometheus text format.", Problems: []string{gateway.CodeNotFound},
		},
		{
			Pattern: "/v1", Access: open, Tenant: none, Handle: a.index, Media: words,
			Doc: "Lists the endpoints as text.",
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
		{
			Pattern: "/v1/schema/answer.json", Access: open, Tenant: none,
			Media: []string{"application/schema+json"}, Status: []int{200, 304},
			Doc: "Returns the JSON Schema of the answer document, version 1.",
			Handle: func(w *httpx.Reply, r *httpx.Request) error {
				w.Tagged(r, "application/schema+json", answerSchema)
				return nil
			},
		},
		{ // if no page is served, and for programs
			Pattern: "/{$}", Access: open, Tenant: none, Handle: a.index, Media: words,
			Doc: "Lists the endpoints as text. A browser gets the page.",
		},
	}
}

// publicRoutes are the endpoints for published data. Anyone may read them, under any host name and from any web page.
// Later revisions of a run's manifest, and proofs, have a suffix after cite.
func (a *API) publicRoutes() []httpx.Route {
	all := []httpx.Route{
		{
			Pattern: "/runs/{pub}/cite/{answer_id}", Media: []string{manifest.ContentType, "text/plain; charset=utf-8"},
			Status: []int{200, 202, 304},
			Doc: "Returns the manifest of an answer or, with the suffix .tlog-proof, the proof that it is logged. " +
				"202 while it is being built.",
		},
		{
			Pattern: "/runs/{pub}/{cite}", Media: []string{manifest.ContentType, "text/plain; charset=utf-8"},
			Status: []int{200, 202, 304}, Doc: "Returns the manifest of a run's final answer.",
		},
		{
			Pattern: manifest.DiscoveryPath, Media: []string{manifest.ContentType},
			Doc: "Describes the publisher, its level, and where to find its keys, schema and log.",
		},
		{
			Pattern: manifest.DirectoryPath, Media: []string{keyring.MediaType},
			Doc: "Returns the current signing keys as a JWK Set.",
		},
		{
			Pattern: manifest.KeysPath, Media: []string{keyring.MediaType},
			Doc: "Returns the current and former signing keys.",
		},
		{
			Pattern: manifest.SchemaPath, Media: []string{"application/schema+json"},
			Doc: "Returns the JSON Schema of manifests.",
		},
		{
			Pattern: manifest.LogPath + "{path...}",
			Media:   []string{"text/plain; charset=utf-8", "application/octet-stream"},
			Doc:     "Returns the transparency log in the C2SP tiled log format.",
		},
	}
	for i := range all {
		rt := &all[i]
		rt.Access, rt.Tenant, rt.Handle = httpx.Public, httpx.Published, a.published
		rt.Problems = []string{gateway.CodeNotFound, gateway.CodeUnavailable}
	}
	return all
}
