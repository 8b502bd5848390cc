package ibid

import (
	"cmp"
	"html"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/internal/frame"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/internal/wire"
)

const (
	maxRefusal = 16 << 10 // bytes of a body that are searched for the reason why a call was refused
	maxReason  = 500      // characters of the reason in the message
)

// isRefused reports whether the HTTP status says that the body is not an answer.
func (d *Decoder) isRefused() bool { return d.Options.Status >= 300 }

// refuse adds an error with the HTTP status as its code. If the body had an error of its own, that stays, and only gets
// the status as its code where it has none.
func (d *Decoder) refuse() {
	code := strconv.Itoa(d.Options.Status)
	if e := d.fold.failure; e != nil {
		if e.Code == wire.UnnamedError {
			e.Code = code
		}
		return
	}
	reason := text.Shorten(strings.Join(strings.Fields(validText(string(d.refusal))), " "), maxReason)
	if isHTML(string(d.refusal)) {
		reason = htmlTitle(string(d.refusal))
	}
	reason = cmp.Or(reason, "the HTTP status is that of an error, and nothing says why")
	d.failed(&ProviderError{Code: code, Message: reason})
}

// readOnlyError reads the first document of a body, which is an error if nothing follows it (see [wire.BareError]). It
// reports whether it looks like one.
func (d *Decoder) readOnlyError(data []byte) bool {
	if d.count > 1 || d.frames.Kind() != frame.JSON {
		return false
	}
	code, message, ok := wire.BareError(data)
	if ok {
		d.onlyError = &ProviderError{Code: code, Message: message}
	}
	return ok
}

// failed passes an error that was held back on to the fold; nil: there was none.
func (d *Decoder) failed(e *ProviderError) {
	if e != nil {
		d.fold.op(&wire.Op{Kind: wire.Error, Name: e.Code, More: e.Message})
	}
}

// htmlPage is the code of an error whose body is an HTML page.
const htmlPage = "html-page"

// isHTML reports whether a text is an HTML page, which is what servers and proxies send when they fail.
func isHTML(text string) bool {
	start := strings.ToLower(strings.TrimSpace(text[:min(len(text), 512)]))
	return strings.HasPrefix(start, "<!doctype html") || strings.HasPrefix(start, "<html")
}

// htmlTitle returns the title of an HTML page, for a message.
func htmlTitle(text string) string {
	const untitled = "an HTML page"
	text = text[:min(len(text), maxRefusal)]
	lower := strings.ToLower(text)
	if len(lower) != len(text) { // offsets differ: some letters are longer in lower case
		return untitled
	}
	start := strings.Index(lower, "<title")
	if start < 0 {
		return untitled
	}
	start += strings.Index(lower[start:]+">", ">") + 1
	end := strings.Index(lower[min(start, len(lower)):], "</title")
	if end < 0 {
		return untitled
	}
	return untitled + ": " + strings.Join(strings.Fields(html.UnescapeString(text[start:start+end])), " ")
}
