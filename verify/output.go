package verify

import (
	"context"
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

// bound says whether the manifest is about the response that announces it.
func (m *checked) bound(ctx context.Context) error {
	out := m.man.Output
	switch {
	case m.upstream != nil:
		m.boundUpstream()
		return nil
	case m.response == nil:
		m.found(OutputUnchecked, CountInfo, "Which response the manifest is about was not looked at: there is none.")
		return nil
	case m.response.Cut:
		m.found(
			OutputUnchecked, CountUnverifiable,
			"The response is not whole, so it cannot be compared with what the manifest says of it.",
		)
		return nil
	case out == nil:
		return m.unbound(ctx)
	}
	digest, body := hexSum(m.served.Body), []byte(snapshot.Hash(m.response.Body))
	if how := boundBy(out, m.response); how != "" {
		m.found(OutputBound, CountPass, "The manifest is about this response: "+how+".")
		m.spans()
		if err := m.Memory.Replace(ctx, memoryOutput, digest, body); err != nil {
			return fmt.Errorf("remembering a response: %w", err)
		}
		return nil
	}
	first, err := m.before(ctx, digest, body)
	if err != nil {
		return err
	}
	if string(first) != string(body) {
		m.fail(Replayed, "The manifest is about another response, and was seen with another one before.")
		return nil
	}
	m.fail(
		OutputMismatch,
		"The manifest is about another response: neither its octets nor its text are those of this one.",
	)
	return nil
}

// before returns the response that the manifest was seen with first. A response that somebody handed over is not kept:
// it may be anybody's, and the publisher's own one is not to look like a replay after it.
func (m *checked) before(ctx context.Context, digest string, body []byte) ([]byte, error) {
	look := m.Memory.Recall
	if m.response.fetched {
		look = func(ctx context.Context, kind, key string) ([]byte, error) {
			return m.Memory.Remember(ctx, kind, key, body)
		}
	}
	first, err := look(ctx, memoryOutput, digest)
	if err != nil {
		return nil, fmt.Errorf("remembering a response: %w", err)
	}
	if first == nil {
		return body, nil
	}
	return first, nil
}

// unbound looks for signs that a manifest that does not say what it is about belongs to another response.
func (m *checked) unbound(ctx context.Context) error {
	first, err := m.before(ctx, hexSum(m.served.Body), []byte(snapshot.Hash(m.response.Body)))
	if err != nil {
		return err
	}
	if string(first) != snapshot.Hash(m.response.Body) {
		m.fail(Replayed, "The manifest does not say which response it is about, and was seen with another one before.")
		return nil
	}
	if at, err := http.ParseTime(
		m.response.Header.Get("Date"),
	); err == nil &&
		at.Sub(m.man.EmittedAt.Time()) > replayWindow {
		m.fail(
			Replayed,
			"The manifest does not say which response it is about, and is more than a day older than this one.",
		)
		return nil
	}
	m.found(OutputUnchecked, CountWarning, "The manifest does not say which response it is about.")
	return nil
}

// boundBy says how a manifest's output is the response; empty: it is not. Of a page only the octets count: two pages
// that show other things may have one text.
func boundBy(out *manifest.Output, r *Response) string {
	if out.Hash == snapshot.Hash(r.Body) {
		return "its octets have the hash"
	}
	if isMarkup(out.MediaType) {
		return ""
	}
	text := said(r)
	switch {
	case text == nil:
		return ""
	case out.Hash == snapshot.Hash([]byte(*text)):
		return "the text of its answer has the hash"
	case out.TextHash != "" && plainText(out.TextHash, out.TextLength, []*string{text}) != nil:
		return "its text has the hash"
	default:
		return ""
	}
}

// plainText returns the normalised one of some texts that has a hash; nil: there is none.
func plainText(hash string, length *int, all []*string) *string {
	for _, text := range all {
		if text == nil {
			continue
		}
		plain := snapshot.Normalize(*text)
		if hash == snapshot.Hash([]byte(plain)) && (length == nil || *length == utf8.RuneCountInString(plain)) {
			return &plain
		}
	}
	return nil
}

// spans says which claims the answer does not make where the manifest says that it does.
func (m *checked) spans() {
	out, r := m.man.Output, m.response
	answer, _ := answerText(r.Body)
	plain := plainText(out.TextHash, out.TextLength, append(texts(r), answer)) // by its hash: any of them that has it
	if plain == nil {
		return // only the octets are bound: what their text is, nobody says
	}
	for i := range m.man.Claims {
		c := &m.man.Claims[i]
		if c.Span == nil || c.Rewritten {
			continue
		}
		if said, ok := snapshot.Slice(*plain, c.Span[0], c.Span[1]); !ok || said != snapshot.Normalize(c.Text) {
			m.report.add(Finding{
				Code:     ManifestInconsistent,
				Counts:   CountFailure,
				Manifest: m.out.URL,
				Path:     fmt.Sprintf("/claims/%d/span", i),
				Detail:   "The answer does not have the claim " + c.ID + " where the manifest says.",
			})
		}
	}
}

// texts returns the text of a body as it is, and as its media type has it.
func texts(r *Response) []*string {
	var all []*string
	if utf8.Valid(r.Body) {
		whole := string(r.Body)
		all = append(all, &whole)
	}
	if text, err := snapshot.Extract(
		r.Body,
		&snapshot.TextOptions{MediaType: r.Header.Get("Content-Type"), URL: r.URL},
	); err == nil {
		all = append(all, &text.Content)
	}
	return all
}
