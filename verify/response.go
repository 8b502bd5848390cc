package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

// URL gets an answer, reads what it announces and verifies that. If a manifest is there, it is verified by itself. What
// cannot be fetched is a report, too; an error is a context that ended, or one of Memory or of a checker.
func (v *Verifier) URL(ctx context.Context, url string) (*Report, error) {
	j := v.job(KindResponse, url)
	snap, err := j.fetch(ctx, &snapshot.FetchRequest{URL: url, Fresh: true})
	if ctx.Err() != nil {
		return nil, fmt.Errorf("verifying %s: %w", url, context.Cause(ctx))
	}
	if err != nil && ofManifest(url) {
		return j.finish(j.unread(ctx, url, err))
	}
	if err != nil {
		j.report.add(Finding{
			Code:   ResponseUnreadable,
			Counts: CountUnverifiable,
			Detail: sentence("The answer could not be fetched", err),
		})
		return j.end(), nil
	}
	announced := len(fields(snap.Header))+len(fields(snap.Trailer)) > 0
	if !announced && (snap.Status == http.StatusAccepted || recognise(snap.Octets) == KindManifest) {
		j.report.Kind = KindManifest
		return j.alone(ctx, url)
	}
	err = j.response(ctx, &Response{
		URL:     snap.FinalURL,
		Status:  snap.Status,
		Header:  snap.Header,
		Trailer: snap.Trailer,
		Body:    snap.Octets,
		fetched: true,
	})
	return j.finish(err)
}

// Manifest fetches the manifest at a URL and verifies it by itself. Errors are as for [Verifier.URL].
func (v *Verifier) Manifest(ctx context.Context, url string) (*Report, error) {
	return v.job(KindManifest, url).alone(ctx, url)
}

// Response verifies what a response announces. The response is not changed; its URL, if it is known, says who it is
// from.
func (v *Verifier) Response(ctx context.Context, r *Response) (*Report, error) {
	j := v.job(KindResponse, r.URL)
	return j.finish(j.response(ctx, r))
}

func (j *job) alone(ctx context.Context, url string) (*Report, error) {
	return j.finish(j.manifests(ctx, []announced{{url: clean(url)}}, nil))
}

// unread reports a manifest that could not be fetched when nobody knew that it is one.
func (j *job) unread(ctx context.Context, url string, err error) error {
	j.report.Kind = KindManifest
	m := &checked{job: j, announced: &announced{url: clean(url)}, over: true}
	m.out.URL, m.out.Level.Why = m.url, []string{}
	m.unfetched(err)
	return m.done(ctx)
}

func (j *job) finish(err error) (*Report, error) {
	if err != nil {
		return nil, fmt.Errorf("verifying: %w", err)
	}
	return j.end(), nil
}

// announced is a manifest that a response announces.
type announced struct {
	url    string
	digest []byte // nil: not said
	listed []manifest.Announcement
}

func (j *job) response(ctx context.Context, r *Response) error {
	j.report.ResponseURL = r.URL
	list, ok := j.header(r)
	if !ok {
		return nil
	}
	if len(list) == 0 {
		j.promised(ctx, r.URL, 0)
		return ctx.Err()
	}
	manifests, alone, ok := j.group(list)
	if !ok {
		return nil
	}
	if err := j.manifests(ctx, manifests, r); err != nil {
		return err
	}
	if err := j.sources(ctx, alone); err != nil {
		return err
	}
	if len(manifests) == 0 {
		j.promised(ctx, r.URL, 1)
	}
	return ctx.Err()
}

// header reads what a response announces: header, trailer and the events of a stream that ibid wrote. It may be
// nothing; false: it cannot be read.
func (j *job) header(r *Response) ([]manifest.Announcement, bool) {
	values := append(fields(r.Header), fields(r.Trailer)...)
	list, err := manifest.ParseHeader(values)
	if err == nil && strings.HasPrefix(strings.ToLower(r.Header.Get("Content-Type")), "text/event-stream") {
		var more []manifest.Announcement
		if more, err = manifest.ParseHeader(events(r.Body)); err == nil {
			list = append(list, more...)
		}
	}
	switch {
	case err != nil:
		j.report.add(
			Finding{
				Code:   HeaderMalformed,
				Counts: CountFailure,
				Detail: sentence("Citation-Source cannot be read", err),
			},
		)
		return nil, false
	case len(list) == 0:
		j.report.add(Finding{
			Code:   HeaderMissing,
			Counts: CountUnverifiable,
			Detail: "The response has no Citation-Source field: it announces no sources, so there is nothing to verify.",
		})
		return nil, true
	}
	j.report.Level.Observed = 1
	return list, true
}

// fields returns the lines of the field; its name may stand there in any case.
func fields(h http.Header) []string {
	var values []string
	for name, lines := range h {
		if strings.EqualFold(name, manifest.HeaderName) {
			values = append(values, lines...)
		}
	}
	return values
}

// events returns the data of the events that announce sources at the end of a stream. Of one that is longer than the
// field may be, so much that its parser says so.
func events(body []byte) []string {
	var values []string
	var data bytes.Buffer
	named := false
	end := func() {
		if named && data.Len() > 0 && len(values) < maxEvents {
			values = append(values, data.String())
		}
		data.Reset()
		named = false
	}
	for line := range bytes.Lines(body) {
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if len(line) == 0 {
			end()
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			named = strings.EqualFold(string(value), manifest.HeaderName)
		case "data":
			data.Write(value[:min(len(value), manifest.MaxHeaderRead+1-data.Len())])
		}
	}
	end()
	return values
}

// maxEvents is how many events of a stream are read that announce sources: there is to be one.
const maxEvents = 8

// group puts together what is announced by manifest, in order; alone are the sources without one.
func (j *job) group(list []manifest.Announcement) (manifests []announced, alone []string, ok bool) {
	places, sources, seen := map[string]int{}, map[string]bool{}, map[string]bool{}
	for _, a := range list {
		if a.URL != "" && !a.More {
			sources[a.URL] = true
		}
		if a.Manifest == "" {
			if a.URL != "" && !seen[a.URL] {
				alone, seen[a.URL] = append(alone, a.URL), true
			}
			continue
		}
		url := clean(a.Manifest)
		at, there := places[url]
		if !there {
			at = len(manifests)
			places[url], manifests = at, append(manifests, announced{url: url})
		}
		m := &manifests[at]
		switch {
		case a.Digest == nil:
		case m.digest == nil:
			m.digest = a.Digest
		case !bytes.Equal(m.digest, a.Digest):
			j.report.add(Finding{
				Code:     HeaderMalformed,
				Counts:   CountFailure,
				Manifest: url,
				Detail:   "The field gives two digests for one manifest.",
			})
			return nil, nil, false
		}
		if !a.More {
			m.listed = append(m.listed, a)
		}
	}
	if len(manifests) > j.limits.Manifests {
		j.report.add(Finding{
			Code:   HeaderMalformed,
			Counts: CountFailure,
			Detail: fmt.Sprintf(
				"The field names %d manifests; at most %d are read.", len(manifests), j.limits.Manifests,
			),
		})
		return nil, nil, false
	}
	j.report.add(Finding{
		Code:   HeaderRead,
		Counts: CountPass,
		Detail: "Citation-Source announces " + number(
			len(sources), "source",
		) + " and " + number(
			len(manifests), "manifest",
		) + ".",
	})
	return manifests, alone, true
}

// manifests verifies all manifests of a response; r is nil if they are verified by themselves.
func (j *job) manifests(ctx context.Context, list []announced, r *Response) error {
	j.grow("manifest", len(list))
	for i := range list {
		m := &checked{job: j, announced: &list[i], response: r}
		m.out.URL = list[i].url
		m.out.Level.Why = []string{}
		if err := m.fetched(ctx); err != nil {
			return err
		}
		if err := m.done(ctx); err != nil {
			return err
		}
	}
	return nil
}

// sentence puts an error behind what it prevented.
func sentence(what string, err error) string {
	why := err.Error()
	if f, ok := errors.AsType[*snapshot.FetchError](err); ok {
		why = string(f.Kind)
		if f.Reason != "" {
			why += " (" + f.Reason + ")"
		}
		if f.Err != nil {
			why += ": " + f.Err.Error()
		}
	}
	return what + ": " + strings.TrimRight(why, ".") + "."
}
