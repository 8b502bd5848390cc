package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/scan"
)

// record returns the operations for the documents of one response, one per line. An event precedes its document, after
// a space: `message_stop {"type":"message_stop"}`. The two heads that every parser emits first are left out.
func record(tb testing.TB, format, request string, docs ...string) []string {
	tb.Helper()
	c := &Config{}
	if request != "" {
		c.Request = scan.Value(request)
	}
	return recordWith(tb, format, c, docs...)
}

// recordWith is record for a parser with the given configuration.
func recordWith(tb testing.TB, format string, c *Config, docs ...string) []string {
	tb.Helper()
	var lines []string
	c.Emit = func(op *Op) { lines = append(lines, line(op)) }
	p, err := New(format, c)
	if err != nil {
		tb.Fatal(err)
	}
	lines = nil
	for _, doc := range docs {
		event, data := splitEvent(doc)
		b := []byte(data)
		p.Parse(event, b)
		clear(b) // a parser must not retain a document
	}
	p.Close()
	return lines
}

func splitEvent(doc string) (event []byte, data string) {
	if name, rest, ok := strings.Cut(doc, " "); ok && name != "" && !strings.ContainsAny(name[:1], "{[\"") {
		return []byte(name), rest
	}
	return nil, doc
}

// line formats an operation. Zero fields are left out.
func line(op *Op) string {
	var b strings.Builder
	add := func(format string, args ...any) { fmt.Fprintf(&b, " "+format, args...) }
	switch op.Kind {
	case Text:
		add("text %s %q", partLine(op.Part), op.Text)
	case Final:
		add("final %s %q", partLine(op.Part), op.Text)
		if op.Cut {
			add("cut")
		}
	case PartBegin:
		add("begin %s", partLine(op.Part))
	case PartEnd:
		add("end-part %s", partLine(op.Part))
	case SourceOp:
		sourceLine(add, op.Source)
	case CiteOp:
		citeLine(add, op.Cite)
	case Withdraw:
		add("withdraw %s", op.Name)
	case MarkersOp:
		markersLine(add, op)
	case Query:
		add("query %q", op.Name)
	case Tool:
		where := ""
		if op.Server {
			where = " at the provider"
		}
		if op.Hidden {
			where += ", not listed"
		}
		add("tool %q %s%s", op.Name, op.More, where)
	case Reasoning:
		add("reasoning %s %q", partLine(op.Part), op.Text)
	case ToolInput:
		add("tool %q input %q", op.Name, op.Text)
	case ToolReady:
		add("tool %q ready %s", op.Name, op.Raw)
	case ToolOutput:
		add("tool %q output %s failed %q", op.Name, op.Raw, op.More)
	case Display:
		add("display %s %q", op.Name, op.More)
	case Head:
		add("head %s=%s", op.Name, op.More)
	case Finish:
		add("finish %d %s", op.Part.Candidate, op.Name)
	case End:
		add("end")
	case Error:
		add("error %s %q", op.Name, op.More)
	case Issue:
		add("issue %s %s", op.Name, op.More)
	case Meta:
		add("meta %s %s", op.Name, op.Raw)
	default:
		add("unknown operation %d", op.Kind)
	}
	return b.String()[1:]
}

func partLine(p Part) string {
	kind := []string{"", "+commentary", "+refusal"}[p.Kind]
	return fmt.Sprintf("%d/%d/%d%s", p.Candidate, p.Message, p.Content, kind)
}

func sourceLine(add func(string, ...any), s *Source) {
	add("source %s %s", s.Key, s.Kind)
	for _, f := range []struct{ name, value string }{
		{"id", s.ID},
		{"global", s.GlobalID},
		{"title", s.Title},
		{"url", s.URL},
		{"original", s.OriginalURL},
		{"filename", s.Filename},
		{"site", s.Site},
		{"authors", strings.Join(s.Authors, ";")},
		{"published", s.PublishedAt},
		{"license", s.License},
		{"content", s.Content},
		{"chunk", s.ChunkID},
	} {
		if f.value != "" {
			add("%s=%q", f.name, f.value)
		}
	}
	if s.Score != nil {
		add("score=%v", *s.Score)
	}
	locatorLine(add, s.Locator)
}

// markersLine formats the sources as one list, followed by what else a number points to.
func markersLine(add func(string, ...any), op *Op) {
	keys := make([]string, len(op.Markers.Refs))
	for i, r := range op.Markers.Refs {
		keys[i] = r.Source
	}
	add("markers %d %s style=%d", op.Part.Candidate, strings.Join(keys, ","), op.Markers.Style)
	for i, r := range op.Markers.Refs {
		if r.Quote != "" || r.Locator != (Locator{}) {
			add("[%d] %q", i+1, r.Quote)
			locatorLine(add, r.Locator)
		}
	}
	if op.Markers.Links {
		add("links")
	}
}

func locatorLine(add func(string, ...any), l Locator) {
	if l.Page != 0 {
		add("page=%d", l.Page)
	}
	if l.LastPage != 0 {
		add("last-page=%d", l.LastPage)
	}
	if l.Chunk != "" {
		add("at-chunk=%q", l.Chunk)
	}
	for _, f := range []struct {
		name  string
		value *int
	}{{"block", l.Block}, {"last-block", l.LastBlock}, {"char-start", l.CharStart}, {"char-end", l.CharEnd}} {
		if f.value != nil {
			add("%s=%d", f.name, *f.value)
		}
	}
}

func citeLine(add func(string, ...any), c *Cite) {
	base := []string{"part", "answer", "message"}[c.Base]
	unit := []string{"bytes", "code-points", "utf-16", "block", "here", "nowhere"}[c.Unit]
	covers := []string{"claim", "link", "point", "block-span"}[c.Covers]
	add("cite %s %s %s", c.Key, partLine(c.Part), covers)
	switch c.Unit {
	case Block, Here, Nowhere:
		add("%s", unit)
	case Bytes, CodePoints, UTF16:
		add("%d-%d %s of %s", c.Start, c.End, unit, base)
	}
	if len(c.Shifts) > 0 {
		add("shifts=%d", c.Shifts)
	}
	if c.Quote != "" {
		add("quote=%q", c.Quote)
	}
	if c.URL != "" {
		add("link=%q", c.URL)
	}
	if c.Origin != "" {
		add("origin=%s", c.Origin)
	}
	for _, r := range c.Refs {
		add("-> %s", r.Source)
		if r.Quote != "" {
			add("%q", r.Quote)
		}
		locatorLine(add, r.Locator)
		if r.Confidence != nil {
			add("confidence=%v", *r.Confidence)
		}
	}
}

// countPrefix returns how many lines begin with prefix.
func countPrefix(lines []string, prefix string) int {
	n := 0
	for _, l := range lines {
		if strings.HasPrefix(l, prefix) {
			n++
		}
	}
	return n
}
