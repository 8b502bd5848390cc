package ibid

import (
	"html"
	"strings"
)

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
