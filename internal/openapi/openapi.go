package openapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
)

// Options are the options of [Write].
type Options struct {
	Root     string                     // of the module, whose comments describe the types; required
	Routes   []httpx.Route              // the routes to describe
	Examples map[string]json.RawMessage // of responses, by operation id
	// Closed disallows undescribed members in responses. It is for tests: clients must expect additional members.
	Closed bool
}

// Write returns the description of the routes as JSON.
func Write(o *Options) ([]byte, error) {
	w := &writer{schemas{
		comments: comments{o.Root, map[string]map[string]*typeComment{}}, all: object{}, names: map[key]string{},
		closed: o.Closed,
	}, o.Examples, object{}}
	w.all["Problem"], w.names[key{}] = problem(), "Problem"
	paths := object{}
	for i := range o.Routes {
		rt := &o.Routes[i]
		operation, err := w.operation(rt)
		if err != nil {
			return nil, fmt.Errorf("describe %s %s: %w", method(rt), rt.Pattern, err)
		}
		path := variable.ReplaceAllString(rt.Pattern, "{$1}")
		if path = strings.TrimSuffix(path, "{$}"); paths[path] == nil {
			paths[path] = object{}
		}
		paths[path].(object)[strings.ToLower(method(rt))] = operation
	}
	document := object{
		"openapi": "3.1.1",
		"info": object{
			"title": "ibid", "version": "1", "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "The citation layer for LLM applications: providers' answers with citations, " +
				"sources and runs. Responses may get additional members: ignore unknown ones.",
		},
		"servers":      []any{object{"url": "/"}},
		"externalDocs": object{"url": "https://github.com/ibidhq/ibid/blob/main/docs/http.md"},
		"paths":        paths,
		"components": object{"schemas": w.all, "responses": w.problems, "securitySchemes": object{
			"bearer": object{"type": "http", "scheme": "bearer", "description": "An access token, ibid_…"},
			"token":  object{"type": "apiKey", "in": "header", "name": gateway.TokenHeader, "description": "The same"},
			"stream": object{
				"type": "apiKey", "in": "query", "name": "access_token", "description": "A stream token, for one run",
			},
		}},
	}
	data, err := json.MarshalIndent(document, "", " ")
	return append(data, '\n'), err
}

// Schema returns a JSON Schema that stands alone, of the JSON of a type of the module at root. ID is its address.
func Schema(root, id, title string, t reflect.Type) ([]byte, error) {
	s := schemas{
		comments: comments{root, map[string]map[string]*typeComment{}}, all: object{}, names: map[key]string{},
	}
	schema, err := s.of(t, false)
	if err != nil {
		return nil, fmt.Errorf("describe %v: %w", t, err)
	}
	schema["$schema"], schema["$id"], schema["title"] = "https://json-schema.org/draft/2020-12/schema", id, title
	schema["$defs"] = s.all
	data, err := json.MarshalIndent(schema, "", " ")
	data = bytes.ReplaceAll(data, []byte(`"#/components/schemas/`), []byte(`"#/$defs/`))
	return append(data, '\n'), err
}

type writer struct {
	schemas

	examples map[string]json.RawMessage
	problems object
}

var variable = regexp.MustCompile(`\{(\w+)(\.\.\.)?\}`)

func method(rt *httpx.Route) string { return cmp.Or(rt.Method, http.MethodGet) }

// OperationID returns the id of a route's operation: getAnswersByIdManifest.
func OperationID(rt *httpx.Route) string {
	var id strings.Builder
	id.WriteString(strings.ToLower(method(rt)))
	pattern := strings.TrimPrefix(strings.TrimSuffix(rt.Pattern, "{$}"), "/v1")
	if pattern == "" {
		pattern = "v1"
	}
	pattern = variable.ReplaceAllString(pattern, "by-$1")
	for word := range strings.FieldsFuncSeq(pattern, func(r rune) bool { return strings.ContainsRune("/-_.", r) }) {
		id.WriteString(capital(word))
	}
	return id.String()
}

// operation describes one method of a path.
func (w *writer) operation(rt *httpx.Route) (object, error) {
	first, rest, _ := strings.Cut(rt.Doc, ". ")
	if first == "" {
		return nil, fmt.Errorf("no Doc")
	}
	operation := object{
		"operationId": OperationID(rt), "summary": strings.TrimSuffix(first, "."), "tags": []string{tag(rt)},
	}
	if rt.Scope != "" {
		rest = strings.TrimSpace(rest + " Scope: " + rt.Scope + ".")
	}
	if rest != "" {
		operation["description"] = rest
	}
	if parameters := parameters(rt); len(parameters) > 0 {
		operation["parameters"] = parameters
	}
	operation["security"] = security(rt)
	var err error
	if rt.Request != nil || rt.Body != nil {
		if operation["requestBody"], err = w.body(rt); err != nil {
			return nil, err
		}
	}
	operation["responses"], err = w.responses(rt)
	return operation, err
}

// tag returns the tag of an operation: the first segment of its path.
func tag(rt *httpx.Route) string {
	if rt.Access == httpx.Public {
		return "published"
	}
	path, ok := strings.CutPrefix(rt.Pattern, "/v1/")
	if !ok || path == "openapi.json" {
		if strings.HasPrefix(rt.Pattern, "/{") && rt.Pattern != "/{$}" {
			return "providers"
		}
		return "operation"
	}
	word, _, _ := strings.Cut(path, "/")
	return word
}

// security lists the ways to authenticate, including none, which works until the first token is created.
func security(rt *httpx.Route) []any {
	scopes := []string{}
	if rt.Scope != "" {
		scopes = append(scopes, rt.Scope)
	}
	all := []any{object{}, object{"bearer": scopes}, object{"token": scopes}}
	switch rt.Access {
	case httpx.ByToken, httpx.ByCookie:
	case httpx.Public, httpx.Open:
		all = []any{}
	case httpx.ByStream:
		all = append(all, object{"stream": []string{}})
	}
	return all
}

func parameters(rt *httpx.Route) []any {
	var all []any
	for _, m := range variable.FindAllStringSubmatch(rt.Pattern, -1) {
		all = append(all, object{
			"name": m[1], "in": "path", "required": true, "schema": object{"type": "string", "minLength": 1},
		})
	}
	for i := range rt.Params {
		p := &rt.Params[i]
		schema := object{"type": "string"}
		switch p.Kind {
		case httpx.Text:
		case httpx.Word:
			schema["enum"] = append(slices.Clone(p.Words), "") // empty means not given
			if p.Default != "" {
				schema["default"] = p.Default
			}
		case httpx.Int:
			n, _ := strconv.ParseInt(p.Default, 10, 64)
			schema = object{"type": "integer", "default": n, "minimum": p.Min, "maximum": p.Max}
		case httpx.Share:
			f, _ := strconv.ParseFloat(p.Default, 64)
			schema = object{"type": "number", "default": f, "minimum": 0, "maximum": 1}
		}
		parameter := object{"name": p.Name, "in": "query", "schema": schema}
		if p.Doc != "" {
			parameter["description"] = capital(p.Doc) + "."
		}
		all = append(all, parameter)
	}
	return all
}

// body describes the body of a request.
func (w *writer) body(rt *httpx.Route) (object, error) {
	content, needed := object{}, true
	for _, media := range rt.Body {
		if needed = needed && media != ""; media != "" {
			content[media] = mediaOf(media)
		}
	}
	if rt.Request != nil {
		schema, err := w.of(reflect.TypeOf(rt.Request), true)
		if err != nil {
			return nil, err
		}
		if rt.Many {
			schema = object{"anyOf": []any{schema, object{"type": "array", "items": schema}}}
		}
		media := object{"schema": schema}
		if rt.Example != "" {
			media["example"] = json.RawMessage(rt.Example)
		}
		content["application/json"] = media
	}
	body := object{"required": needed, "content": content}
	if most := cmp.Or(rt.MaxBody, httpx.MaxJSON); most > 0 {
		body["description"] = fmt.Sprintf("At most %d bytes.", most)
	}
	return body, nil
}

// mediaOf describes a body that is not one of our types.
func mediaOf(media string) object {
	switch {
	case media == "multipart/form-data":
		octets := object{"type": "string", "contentMediaType": "application/octet-stream"}
		return object{"schema": object{"type": "object", "required": []string{"response"}, "properties": object{
			"response": octets, "request": octets, "documents": octets,
		}}}
	case strings.HasPrefix(media, "text/") && media != "text/event-stream":
		return object{"schema": object{"type": "string"}}
	case strings.HasSuffix(media, "json"):
		return object{"schema": object{}}
	}
	return object{}
}

// responses describes the responses of a route.
func (w *writer) responses(rt *httpx.Route) (object, error) {
	all := object{}
	statuses := rt.Status
	if statuses == nil {
		statuses = []int{http.StatusOK}
	}
	for _, status := range statuses {
		response, headers := object{"description": http.StatusText(status)}, object{}
		if rt.Access != httpx.Public {
			headers["X-Request-Id"] = header("The id of the request in ibid's log.")
		}
		if status != http.StatusNoContent && status != http.StatusNotModified {
			content, err := w.content(rt)
			if err != nil {
				return nil, err
			}
			response["content"] = content
		}
		if status == http.StatusServiceUnavailable || status == http.StatusAccepted {
			headers["Retry-After"] = retryAfter()
		}
		if len(headers) > 0 {
			response["headers"] = headers
		}
		all[strconv.Itoa(status)] = response
	}
	byStatus := map[int][]string{}
	for _, code := range rt.Codes() {
		status := gateway.NewProblem(code, "", "").Status
		byStatus[status] = append(byStatus[status], code)
	}
	for status, codes := range byStatus {
		if all[strconv.Itoa(status)] != nil {
			return nil, fmt.Errorf("the status %d is also that of a problem", status)
		}
		if rt.Fail != nil && !rt.Sentences { // with OTLP's own errors
			all[strconv.Itoa(status)] = w.otlp(rt, status)
			continue
		}
		name := strings.Join(codes, "-or-")
		if rt.Access == httpx.Public {
			name += "-published"
		}
		if rt.Sentences {
			name += "-or-text"
		}
		w.problems[name] = problemResponse(status, codes, rt)
		all[strconv.Itoa(status)] = object{"$ref": "#/components/responses/" + name}
	}
	return all, nil
}

// content describes the bodies of a route's responses.
func (w *writer) content(rt *httpx.Route) (object, error) {
	content := object{}
	for _, media := range rt.Media {
		content[media] = mediaOf(media)
	}
	if rt.Response == nil {
		return content, nil
	}
	schema, err := w.of(reflect.TypeOf(rt.Response), false)
	if err != nil {
		return nil, err
	}
	if rt.List != "" {
		schema = object{
			"type": "object", "required": []string{rt.List, "next_cursor"}, "properties": object{
				rt.List: object{"type": "array", "items": schema},
				"next_cursor": object{
					"type": []string{"string", "null"}, "description": "The cursor of the next page; null on the last.",
				},
			},
		}
	}
	if _, others := content["application/json"]; others { // there are other programs' JSON formats
		schema = object{"anyOf": []any{schema, object{}}}
	}
	body := object{"schema": schema}
	if example := w.examples[OperationID(rt)]; example != nil {
		body["example"] = example
	}
	content["application/json"] = body
	return content, nil
}

func header(description string) object {
	return object{"description": description, "required": true, "schema": object{"type": "string"}}
}

func retryAfter() object {
	return object{
		"description": "Seconds to wait before retrying.", "required": true,
		"schema": object{"type": "integer", "minimum": 0},
	}
}

// otlp describes an error of a trace request: a google.rpc.Status.
func (w *writer) otlp(rt *httpx.Route, status int) object {
	content := object{}
	for _, media := range rt.Media {
		content[media] = mediaOf(media)
		if strings.HasSuffix(media, "json") {
			content[media] = object{"schema": object{
				"type": "object", "required": []string{"code", "message"},
				"properties": object{"code": object{"type": "integer"}, "message": object{"type": "string"}},
			}}
		}
	}
	response := object{"description": http.StatusText(status), "content": content}
	if status == http.StatusServiceUnavailable {
		response["headers"] = object{"Retry-After": retryAfter()}
	}
	return response
}

// problem is the schema of a problem.
func problem() object {
	text := object{"type": "string"}
	return object{
		"type": "object", "required": []string{"type", "title", "status"},
		"description": "An error of ibid itself (RFC 9457). The fragment of type is a code for programs.",
		"properties": object{
			"type": text, "title": text, "status": object{"type": "integer"},
			"detail": object{"type": "string", "description": "The reason for the error, for people."},
			"hint":   object{"type": "string", "description": "What to do, for people."},
		},
	}
}

// problemResponse describes a response that is one of some problems of a route, of the same status.
func problemResponse(status int, codes []string, rt *httpx.Route) object {
	types := make([]string, len(codes))
	for i, code := range codes {
		types[i] = gateway.ProblemType(code)
	}
	slices.Sort(types)
	headers := object{}
	if rt.Access != httpx.Public {
		headers["X-Request-Id"] = header("The id of the request in ibid's log.")
	}
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		headers["Retry-After"] = retryAfter()
	case http.StatusUnauthorized:
		headers["WWW-Authenticate"] = header("How to send a token.")
	}
	content := object{"application/problem+json": object{"schema": object{
		"allOf":      []any{reference("Problem")},
		"properties": object{"type": object{"enum": types}, "status": object{"const": status}},
	}}}
	if rt.Sentences {
		content["text/plain; charset=utf-8"] = object{"schema": object{
			"type": "string", "description": "The same as one sentence of plain text, for useChat, which displays it.",
		}}
	}
	return object{
		"description": http.StatusText(status) + ": " + strings.Join(codes, ", "),
		"headers":     headers,
		"content":     content,
	}
}
