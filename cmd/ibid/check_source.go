package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/verify"
)

// material is the text that a claim is checked against.
type material struct {
	passages []support.Passage
	from     []origin     // of each passage
	issues   []ibid.Issue // of the sources
	failed   bool         // a part of a source could not be read
}

// origin is the source of a passage.
type origin struct {
	source  string // its name and, if the file has several documents, the document's id
	text    string // of the document
	passage snapshot.Passage
}

// readMaterial reads sources and splits their documents into passages. A page is named by its final URL.
func readMaterial(ctx context.Context, names []string, f *snapshot.Fetcher, w world) (*material, error) {
	m := &material{}
	for _, name := range names {
		documents, found, _, err := readSource(ctx, name, f, w.in, func(r io.Reader) io.Reader { return r })
		if err != nil {
			return nil, usagef(sourceHint(err), "read %s: %w", name, err)
		}
		if isURL(name) {
			name = found
		}
		for i := range documents {
			m.add(name, &documents[i], len(documents) > 1)
			issues, failed := sayTextIssues(w.err, name, documents[i].Text)
			m.issues, m.failed = append(m.issues, issues...), m.failed || failed
		}
	}
	if len(m.passages) == 0 {
		return nil, errors.New("the sources have no text")
	}
	return m, nil
}

// sayTextIssues reports the issues of a source's text, and whether a part of it could not be read, or it tells that it
// is not the source. A page that merely has little text may be a source.
func sayTextIssues(w io.Writer, name string, t *snapshot.Text) (issues []ibid.Issue, failed bool) {
	all := t.Issues
	switch t.Obstacle {
	case "", snapshot.ObstacleStub, snapshot.ObstacleEmpty, snapshot.ObstacleScriptOnly:
	default:
		failed = true
		all = append(slices.Clone(all), ibid.Issue{
			Code: string(verify.NotComparable), Detail: string(t.Obstacle) + ": " + verify.StandIn(t.Obstacle) +
				" stands in for the source",
		})
	}
	for _, issue := range all {
		failed = failed || issue.Code == snapshot.IssueLineUnreadable || issue.Code == snapshot.IssuePageUnreadable
		issue.Detail = name + ": " + issue.Detail
		issues = append(issues, issue)
		say(w, "%s: %s", issue.Code, issue.Detail)
	}
	return issues, failed
}

func (m *material) add(name string, d *snapshot.Document, several bool) {
	if several {
		name += " (" + d.ID + ")"
	}
	for _, p := range d.Text.Passages(nil) {
		m.passages = append(
			m.passages,
			support.Passage{ID: d.ID, Text: p.Apart(d.Text.Content), Language: d.Text.Language},
		)
		m.from = append(m.from, origin{name, d.Text.Content, p})
	}
}

// readSource reads the documents of a file or a page. It returns its display name and its size in bytes; through wraps
// the reader of a file.
func readSource(
	ctx context.Context, name string, f *snapshot.Fetcher, stdin io.Reader, through func(io.Reader) io.Reader,
) (documents []snapshot.Document, called string, size int, err error) {
	if isURL(name) {
		return readPage(ctx, f, name)
	}
	in, closeFile, err := openFile(name, stdin)
	if err != nil {
		return nil, name, 0, bare(err)
	}
	defer closeFile()
	if called = "stdin"; name != stdinName {
		called = filepath.ToSlash(filepath.Clean(name))
	}
	data, err := io.ReadAll(io.LimitReader(through(in), snapshot.MaxBytes+1))
	if err != nil {
		return nil, called, len(data), bare(err)
	}
	if documents, err = snapshot.ReadDocuments(called, data, &snapshot.TextOptions{Context: ctx}); err != nil {
		return nil, called, len(data), &unnamedError{called, err}
	}
	return documents, called, len(data), nil
}

// unnamedError is an error about a file or a page without its name and operation, which messages state themselves.
type unnamedError struct {
	name string // the prefix of the error
	err  error
}

func (e *unnamedError) Error() string {
	if fetch, ok := errors.AsType[*snapshot.FetchError](e.err); ok {
		return strings.TrimPrefix(fetch.Error(), "fetching "+fetch.URL+": ")
	}
	return strings.TrimPrefix(strings.TrimPrefix(e.err.Error(), e.name+": "), "reading the document: ")
}

func (e *unnamedError) Unwrap() error { return e.err }

// sourceHint returns the hint for a source that could not be read or fetched.
func sourceHint(err error) string {
	fetch, fetched := errors.AsType[*snapshot.FetchError](err)
	switch {
	case fetched:
		switch fetch.Kind {
		case snapshot.Blocked:
			if fetch.Reason == "network" || fetch.Reason == "port" {
				return "if it is in your own network, allow that with --allow-net CIDR, such as --allow-net 127.0.0.0/8"
			}
			return "URLs begin with https:// or http://"
		case snapshot.AccessDenied:
			return "save the page and name the file"
		case snapshot.TooLarge:
			return "save the relevant part, and name the file"
		case snapshot.Gone:
			return "does a browser find it?"
		case snapshot.Unreachable:
			return "try again later, or save the page and name the file"
		case snapshot.RobotsDisallowed, snapshot.UnsupportedMedia:
		}
		return ""
	case errors.Is(err, snapshot.ErrUnsupported):
		return "sources are text, Markdown, HTML, PDF or JSON lines"
	case errors.Is(err, snapshot.ErrEmpty):
		return "did the program that wrote it fail?"
	case errors.Is(err, snapshot.ErrDamaged):
		return "does another program open it? save it again, or as text"
	case errors.Is(err, snapshot.ErrEncrypted):
		return "save it without its password"
	case errors.Is(err, snapshot.ErrTooLarge), errors.Is(err, snapshot.ErrTimeout), errors.Is(err, snapshot.ErrTooDeep):
		return "split it, or save the relevant part as text"
	}
	return explain(err).hint
}

// find returns the origin of a piece of evidence, and its span in that document's text.
func (m *material) find(e support.Span) (*origin, ibid.Span) {
	from := &m.from[e.Passage]
	return from, from.passage.Place(from.text, e.Span)
}

// name sets the source of a piece of evidence, and its offsets in the source's text.
func (m *material) name(out *support.ReportEvidence, e support.Span) {
	from, span := m.find(e)
	out.Source, out.Start, out.End, out.Text = &from.source, span.Start, span.End, from.text[span.Start:span.End]
	if from.passage.Page > 0 {
		out.Page = &from.passage.Page
	}
}

// place names a source and a page for people.
func (o *origin) place() string {
	if o.passage.Page == 0 {
		return o.source
	}
	return fmt.Sprintf("%s, page %d", o.source, o.passage.Page)
}

// newPageFetcher returns the fetcher for sources named by URL, with the same size limit as files.
func newPageFetcher(allow server.Networks) *snapshot.Fetcher {
	return snapshot.NewFetcher(&snapshot.FetchOptions{
		Allow: allow, Limits: snapshot.FetchLimits{Bytes: snapshot.MaxBytes, Compressed: snapshot.MaxBytes},
	})
}

// readPage reads the documents at a URL. The document of a web page is named by its final URL.
func readPage(
	ctx context.Context, f *snapshot.Fetcher, name string,
) (documents []snapshot.Document, found string, size int, err error) {
	snap, err := f.Fetch(ctx, &snapshot.FetchRequest{URL: name})
	if err != nil {
		return nil, name, 0, &unnamedError{name, err}
	}
	found, size = snap.FinalURL, len(snap.Octets)
	file := found // the file name it would have
	if u, err := url.Parse(found); err == nil {
		if file = path.Base(u.Path); file == "." || file == "/" {
			file = u.Host
		}
	}
	documents, err = snapshot.ReadDocuments(
		file, snap.Octets, &snapshot.TextOptions{MediaType: snap.MediaType, URL: found, Name: file, Context: ctx},
	)
	if err != nil {
		return nil, found, size, &unnamedError{file, err}
	}
	if len(documents) != 1 || documents[0].ID != file { // the documents of a JSON lines file have their own ids
		return documents, found, size, nil
	}
	d := &documents[0]
	d.ID, d.Source.ID, d.Source.Kind, d.Source.Filename = found, found, ibid.Web, ""
	if clean, err := snapshot.CleanURL(name); err == nil && clean != found {
		d.Source.OriginalURL = clean
	}
	return documents, found, size, nil
}
