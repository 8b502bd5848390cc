package wire

import (
	"cmp"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// How providers, and the gateways in front of them, report that a call failed. The shapes come from their references
// and from response bodies in the issue trackers of their SDKs:
//
//	{"error": {"message", "code", "type", "status"}}               OpenAI, Anthropic, Google, OpenRouter
//	[{"error": {…}}]                                               Google, if a stream was requested
//	{"error": "…", "code" | "status" | "message"}                  xAI, Ollama, Hugging Face, NestJS, Spring
//	{"message", "id" | "request_id" | "trace_id"}                  Cohere, and gateways before Mistral and others
//	{"object": "error", "message", "type", "code"}                 Mistral, vLLM; message may be {"detail": […]}
//	{"detail": "…"}, {"detail": [{"loc", "msg"}]}                  FastAPI: Mistral, Perplexity
//	{"statusCode", "message", "activityId"}                        Azure API Management
//	{"message", "originalStatusCode", "originalMessage"}           Bedrock, SageMaker
//	{"__type", "message"}                                          AWS
//	{"success": false, "errors": [{"code", "message"}], "result"}  Cloudflare
//	{"title", "status", "detail"}                                  RFC 9457
//	{"fault": {"faultstring", "detail"}}                           Apigee
//	{"errorMessage", "errorType", "stackTrace"}                    AWS Lambda
//	{"error_code", "error_msg"}                                    Baidu
//
// A body whose member error is an object or a text is an error. For all others one rule decides. It is strict, since
// taking an answer for an error is worse than showing an error as text: the body has only members that [errorMembers]
// lists, at least one of them is a sign of failure, none is a sign of success, and there is a message.

// ReadError reads a body, or an event of a stream, that reports that the call failed; ok reports whether doc does. A
// {"message": "…"} with nothing else is left to [BareError]. Event is the name of the event, if it has one.
func ReadError(event []byte, doc scan.Value) (code, message string, ok bool) {
	if doc.IsArray() {
		a := scan.Elements(doc)
		if !a.Next() {
			return "", "", false
		}
		doc = a.Val
	}
	e := doc.Get("error")
	named := !blank(e) && (e.IsObject() || e.IsArray() || e.IsString()) && !hasAnswer(doc)
	if code, message = readError(doc); message == "" || !named && !isError(event, doc) {
		return "", "", false
	}
	return cmp.Or(code, UnnamedError), message, true
}

// hasAnswer reports whether a document has a text that is an answer, whatever its member error contains.
func hasAnswer(doc scan.Value) bool {
	for _, name := range []string{"answer", "response", "output", "text", "content", "result"} {
		if v := doc.Get(name); v.IsString() && !blank(v) {
			return true
		}
	}
	return false
}

// BareError reads {"message": "…"}, with which API gateways (AWS, Kong) reject a call. It is an error only as the whole
// body: in a stream it may be part of an answer.
func BareError(doc scan.Value) (code, message string, ok bool) {
	o := scan.Members(doc)
	if doc.Cut() || !o.Next() || !strings.EqualFold(string(o.Key), "message") {
		return "", "", false
	}
	message = o.Val.Str()
	return UnnamedError, message, message != "" && !o.Next()
}

// UnnamedError is the code of an error for which the provider gave none.
const UnnamedError = "error"

// ReadException returns the message of an exception in a binary event stream, or all of the exception.
func ReadException(data scan.Value) string {
	return cmp.Or(words(data, maxDepth), shorten(string(data)))
}

// sign is what the value of a member tells about the call.
type sign int

const (
	noSign  sign = iota
	failing      // it failed
	working      // it succeeded
)

// errorMembers lists the members of error bodies, with what their values are a sign of. Empty values (null, "", [], {})
// are skipped.
var errorMembers = map[string]func(scan.Value) sign{
	"message": neutral, "Message": neutral, "title": neutral, "param": neutral, "instance": neutral, "path": neutral,
	"timestamp": neutral, "resourceName": neutral, "LogStreamArn": neutral, "stackTrace": neutral,

	"detail": certain, "errors": certain, "originalMessage": certain, "OriginalMessage": certain, "fault": certain,
	"errorMessage": certain, "errorType": certain, "error_msg": certain,
	"request_id": certain, "requestId": certain, "trace_id": certain, "traceId": certain, "activityId": certain,

	"code": ofCode, "__type": ofCode, "ErrorCode": ofCode, "error_code": ofCode, "statusCode": ofCode,
	"status_code": ofCode, "raw_status_code": ofCode, "originalStatusCode": ofCode, "OriginalStatusCode": ofCode,

	"status": func(v scan.Value) sign {
		if _, isNumber := v.Int(); isNumber || isSuccess(v) {
			return ofCode(v)
		}
		return when(isFailure(v))
	},
	"type":   func(v scan.Value) sign { return when(isFailure(v)) },
	"object": func(v scan.Value) sign { return when(v.Str() == "error") },
	"id":     func(v scan.Value) sign { return when(isUUID(v.Str())) },
	"error": func(v scan.Value) sign {
		if n, isNumber := v.Int(); isNumber {
			return when(n >= 400)
		}
		return ofTruth(failing, working)(v)
	},
	"success": ofTruth(working, failing),
}

func neutral(scan.Value) sign { return noSign }
func certain(scan.Value) sign { return failing }

func when(failed bool) sign {
	if failed {
		return failing
	}
	return noSign
}

func ofTruth(yes, no sign) func(scan.Value) sign {
	return func(v scan.Value) sign {
		switch string(v) {
		case "true":
			return yes
		case "false":
			return no
		}
		return noSign
	}
}

// ofCode reads a code: 0, HTTP's codes for success, and words like "ok" mean that nothing failed. A text that is not a
// single word, such as a program, is not a code.
func ofCode(v scan.Value) sign {
	switch {
	case isSuccess(v):
		return working
	case v.IsString() && strings.ContainsAny(v.Str(), " ()=;\n"):
		return noSign
	}
	return failing
}

func isSuccess(v scan.Value) bool {
	if n, ok := v.Int(); ok {
		return n == 0 || n/100 == 2
	}
	switch strings.ToLower(v.Str()) {
	case "ok", "success", "succeeded", "completed":
		return true
	}
	return false
}

// isFailure reports whether a word is the name of an error: invalid_request_error, validationException, failed.
func isFailure(v scan.Value) bool {
	word := strings.ToLower(v.Str())
	return strings.HasSuffix(word, "error") || strings.HasSuffix(word, "exception") || strings.HasPrefix(word, "fail")
}

// isError reports whether a document whose member error is neither an object nor a text is an error.
func isError(event []byte, doc scan.Value) bool {
	failed := string(event) == "error"
	for o := scan.Members(doc); o.Next(); {
		if blank(o.Val) {
			continue
		}
		read := errorMembers[string(o.Key)]
		if read == nil {
			return false // errors have no such member
		}
		switch read(o.Val) {
		case failing:
			failed = true
		case working:
			return false
		case noSign:
		}
	}
	return failed
}

// readError returns the code and message of doc, which is known to be an error; either may be empty.
func readError(doc scan.Value) (code, message string) {
	e := doc.Get("error")
	switch {
	case blank(e):
	case e.IsObject(), e.IsArray():
		first := e
		if a := scan.Elements(e); a.Next() {
			first = a.Val
		}
		code = firstText(first, "code", "type", "status")
		return code, cmp.Or(words(e, maxDepth), code)
	case e.IsString():
		code = firstText(doc, "code", "status", "statusCode")
		if code == "" && !strings.Contains(e.Str(), " ") { // a sentence is not a code
			code = e.Str()
		}
		return code, cmp.Or(words(doc.Get("message", "error_description"), maxDepth), e.Str(), shorten(string(e)))
	}
	code = firstText(doc, "code", "__type", "ErrorCode", "status", "statusCode", "status_code")
	if first := scan.Elements(doc.Get("errors")); code == "" && first.Next() {
		code = firstText(first.Val, "code")
	}
	code = cmp.Or(code, firstText(
		doc, "type", "originalStatusCode", "OriginalStatusCode", "raw_status_code", "error_code", "errorType",
	))
	if _, isNumber := e.Int(); isNumber {
		code = cmp.Or(code, e.Text())
	}
	message = words(doc, maxDepth)
	if _, isProblem := doc.Get("status").Int(); message == "" && isProblem {
		message = doc.Get("title").Str()
	}
	return code, message
}

const (
	maxDepth = 6  // levels of an error in which a message is searched for
	maxWords = 10 // elements of a list whose messages are returned
)

// words returns the message in a part of an error: that of an object's first member which has one, or those of a list's
// elements. If a validator tells which part of the request is wrong, the message begins with that.
func words(v scan.Value, depth int) string {
	switch {
	case depth == 0:
	case v.IsObject():
		for _, name := range []string{
			"message", "Message", "detail", "errors", "error", "msg", "originalMessage", "OriginalMessage",
			"fault", "faultstring", "errorMessage", "error_msg",
		} {
			if message := words(v.Get(name), depth-1); message != "" {
				return placeInRequest(v.Get("loc")) + message
			}
		}
	case v.IsArray():
		var all []string
		for a := scan.Elements(v); a.Next() && len(all) < maxWords; {
			if message := words(a.Val, depth-1); message != "" {
				all = append(all, message)
			}
		}
		return strings.Join(all, "; ")
	default:
		return v.Str()
	}
	return ""
}

// placeInRequest reads the path that pydantic gives: ["body", "messages", 0] becomes "body.messages.0: ".
func placeInRequest(loc scan.Value) string {
	var path []string
	for a := scan.Elements(loc); a.Next() && len(path) < maxWords; {
		path = append(path, a.Val.Text())
	}
	if len(path) == 0 {
		return ""
	}
	return strings.Join(path, ".") + ": "
}

// isUUID reports whether s looks like a UUID, as ids of requests do.
func isUUID(s string) bool {
	return len(s) == 36 && strings.Count(s, "-") == 4 && strings.Trim(s, "0123456789abcdefABCDEF-") == ""
}
