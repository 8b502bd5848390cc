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
	maxRefusal = 16 << 10 // bytes of a body that are looked at to find out why a call was refused
	maxReason  = 500      // characters of it that an error has
)

// isRefused reports whether the HTTP status says that the body is no answer.
func (d *Decoder) isRefused() bool { return d.Options.Status >= 300 }

// refuse says the error that the HTTP status is, if the body has not said one. Where the body names no code, the status
// is it.
func (d *Decoder) refuse() {
	code := strconv.Itoa(d.Options.Status)
	if e := d.fold.failure; e != nil {
		if e.Code == unnamedError {
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

// readOnlyError reads the first document of a body, which may be an error for want of anything else.
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

// failed says an error that was found before it was certain; nil: there is none.
func (d *Decoder) failed(e *ProviderError) {
	if e != nil {
		d.fold.op(&wire.Op{Kind: wire.Error, Name: e.Code, More: e.Message})
	}
}

// htmlPage is the code of the error that is made of an HTML page.
const htmlPage = "html-page"

// isHTML reports whether a text is an HTML page: what servers and proxies answer with when they fail.
func isHTML(text string) bool {
	start := strings.ToLower(strings.TrimSpace(text[:min(len(text), 512)]))
	return strings.HasPrefix(start, "<!doctype html") || strings.HasPrefix(start, "<html")
}

// htmlTitle returns the title of an HTML page, for a message.
func htmlTitle(text string) string {
	const most = 16 << 10
	text = text[:min(len(text), most)]
	lower := strings.ToLower(text)
	if len(lower) != len(text) { // letters whose lower case is longer
		return "an HTML page"
	}
	start := strings.Index(lower, "<title")
	if start < 0 {
		return "an HTML page"
	}
	start += strings.Index(lower[start:]+">", ">") + 1
	end := strings.Index(lower[min(start, len(lower)):], "</title")
	if end < 0 {
		return "an HTML page"
	}
	return "an HTML page: " + strings.Join(strings.Fields(html.UnescapeString(text[start:start+end])), " ")
}
