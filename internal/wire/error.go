package wire

import "github.com/ibidhq/ibid/internal/scan"

// ReadError reads the error bodies that the providers and the proxies between send: {"error": {…}} in its many spellings,
// {"error": "…"}, {"message": "…"} alone, problem+json, and those inside an array. It reports whether doc is one.
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
	case e.IsString():
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
	message = firstText(doc, "message", "Message", "detail", "title")
	code = firstText(doc, "code", "__type", "status", "statusCode", "type")
	if message == "" || !doc.IsObject() {
		return "", "", false
	}
	for o := scan.Members(doc); o.Next(); {
		switch string(o.Key) {
		case "message", "Message", "detail", "title", "code", "__type", "status", "statusCode", "type", "instance", "id", "request_id", "object", "param":
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
