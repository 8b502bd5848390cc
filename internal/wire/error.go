package wire

import (
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// ReadError reads the error bodies that the providers and the proxies between send: {"error": {…}} in its many
// spellings, {"error": "…"}, {"message": "…"} with a code, problem+json, and those inside an array. It reports whether
// doc is one: of what only might be one, as {"message": "…"} alone, it is not sure.
func ReadError(doc scan.Value) (code, message string, ok bool) {
	if doc.IsArray() {
		a := scan.Elements(doc)
		if !a.Next() {
			return "", "", false
		}
		doc = a.Val
	}
	e := doc.Get("error")
	switch {
	case e.IsObject():
		code = firstText(e, "code", "type", "status")
		message = firstText(e, "message", "detail", "msg")
		if code == "" && message == "" {
			return "", "", false
		}
	case e.IsString():
		if len(e.Content()) == 0 {
			return "", "", false
		}
		code, message = firstText(doc, "code", "status", "error"), e.Str()
		if m := doc.Get("message").Str(); m != "" {
			message = m
		}
	default:
		return bareError(doc)
	}
	if message == "" {
		message = clip(string(e))
	}
	if code == "" {
		code = "error"
	}
	return code, message, true
}

// bareError reads an error body without a member error.
func bareError(doc scan.Value) (code, message string, ok bool) {
	message = firstText(doc, "message", "Message")
	code = firstText(doc, "code", "__type", "status", "statusCode")
	kind := strings.ToLower(doc.Get("type").Str())
	sure := code != "" || strings.HasSuffix(kind, "error") || strings.HasSuffix(kind, "exception")
	if message == "" {
		message = firstText(doc, "detail", "title")
		sure = firstText(doc, "detail", "status") != ""
	}
	if message == "" || !sure {
		return "", "", false
	}
	if code == "" {
		code = doc.Get("type").Str()
	}
	for o := scan.Members(doc); o.Next(); {
		switch string(o.Key) {
		case "message", "Message", "detail", "title", "code", "__type", "status", "statusCode", "type", "instance",
			"id", "request_id", "object", "param":
		default:
			return "", "", false // says more than an error would
		}
	}
	if doc.Get("message").IsObject() {
		return "", "", false
	}
	if code == "" {
		code = "error"
	}
	return code, message, true
}

// firstText returns the first of the named members that says something.
func firstText(v scan.Value, names ...string) string {
	for _, name := range names {
		if s := v.Get(name).Text(); s != "" {
			return s
		}
	}
	return ""
}

// ReadException returns the words of an exception in a binary event stream: its message, or all of it.
func ReadException(data scan.Value) string {
	if message := firstText(data, "message", "Message", "originalMessage"); message != "" {
		return message
	}
	return clip(string(data))
}
