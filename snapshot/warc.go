package snapshot

import (
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// WriteWARC writes snapshots as a WARC 1.1 file (.warc.gz) with one gzip member per record, so that it can be read from
// any record. The file names software as its creator.
//
// A document from the network is a response record. Its content codings are removed: their fields are kept as
// X-Archive-Orig-Content-Encoding and the like, and Content-Length is that of the record. Any other document (with
// Status 0, or NotModified, which is our copy) is a resource record. Each has a metadata record with its hash and the
// addresses on the way to it. An error of w ends the file and is returned.
func WriteWARC(w io.Writer, software string, list ...*Snapshot) error {
	a := warc{w: w, zip: gzip.NewWriter(w)}
	if err := a.writeInfo(software); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	for _, s := range list {
		if err := a.snapshot(s); err != nil {
			return fmt.Errorf("writing the archive: %s: %w", shownURL(s.URL), err)
		}
	}
	return nil
}

// warc writes records.
type warc struct {
	w    io.Writer
	zip  *gzip.Writer
	info string // the id of the first record, to which the others refer
}

// field is a named field of a record's header or of a block of fields.
type field struct{ name, value string }

// record is one record without the fields that all have.
type record struct {
	kind        string
	target      string // an address; empty if it has none
	at          time.Time
	contentType string
	fields      []field
	block       []byte
}

// writeInfo writes the record that describes the file.
func (a *warc) writeInfo(software string) (err error) {
	about := []field{
		{"software", software},
		{"format", "WARC File Format 1.1"},
		{"conformsTo", "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"},
	}
	a.info, err = a.write(&record{
		kind: "warcinfo", at: time.Now(), contentType: warcFields, block: appendFields(nil, about),
	})
	return err
}

const warcFields = "application/warc-fields"

// snapshot writes a document and its metadata.
func (a *warc) snapshot(s *Snapshot) error {
	target, err := CleanURL(cmp.Or(s.FinalURL, s.URL))
	if err != nil {
		return err
	}
	hash := Hash(s.Octets)
	doc := record{
		kind: "response", target: target, at: s.FetchedAt, contentType: "application/http;msgtype=response",
		fields: []field{{"WARC-Warcinfo-ID", a.info}, {"WARC-Payload-Digest", hash}}, block: httpBlock(s),
	}
	if s.Status == 0 || s.NotModified {
		doc.kind, doc.block = "resource", s.Octets
		doc.contentType = cmp.Or(fieldValue(s.MediaType), "application/octet-stream")
	}
	id, err := a.write(&doc)
	if err != nil {
		return err
	}
	_, err = a.write(&record{
		kind: "metadata", target: target, at: s.FetchedAt, contentType: warcFields,
		fields: []field{{"WARC-Warcinfo-ID", a.info}, {"WARC-Concurrent-To", id}},
		block:  appendFields(nil, metadata(s, hash)),
	})
	return err
}

// metadata lists the metadata of a document.
func metadata(s *Snapshot, hash string) []field {
	list := []field{{"ibid-hash", hash}, {"ibid-requested-url", s.URL}}
	for _, hop := range s.Hops {
		list = append(list, field{"ibid-hop", hop})
	}
	list = append(list, field{"ibid-final-url", cmp.Or(s.FinalURL, s.URL)})
	if s.UserAgent != "" {
		list = append(list, field{"ibid-user-agent", s.UserAgent})
	}
	if s.NotModified {
		list = append(list, field{"ibid-not-modified", "true"})
	}
	if coding := s.Header.Get("Content-Encoding"); coding != "" {
		list = append(list, field{"ibid-content-coding-removed", coding})
	}
	return list
}

// httpBlock returns a response in the form of HTTP/1.1.
func httpBlock(s *Snapshot) []byte {
	b := make([]byte, 0, len(s.Octets)+1024)
	b = fmt.Appendf(b, "HTTP/1.1 %03d %s\r\n", s.Status, http.StatusText(s.Status))
	for _, name := range slices.Sorted(maps.Keys(s.Header)) {
		as := name
		switch http.CanonicalHeaderKey(name) {
		case "Content-Encoding", "Content-Length", "Transfer-Encoding":
			as = "X-Archive-Orig-" + name // they describe other octets
		}
		for _, v := range s.Header[name] {
			b = appendFields(b, []field{{as, v}})
		}
	}
	b = appendFields(b, []field{{"Content-Length", strconv.Itoa(len(s.Octets))}})
	return append(append(b, "\r\n"...), s.Octets...)
}

// write writes a record as a gzip member and returns its id.
func (a *warc) write(r *record) (id string, err error) {
	id = "<" + uuid.New().URN() + ">"
	fields := []field{
		{"WARC-Type", r.kind},
		{"WARC-Record-ID", id},
		{"WARC-Date", r.at.UTC().Format("2006-01-02T15:04:05.000000Z")},
	}
	if r.target != "" {
		fields = append(fields, field{"WARC-Target-URI", r.target})
	}
	fields = append(fields, r.fields...)
	fields = append(
		fields, field{"WARC-Block-Digest", Hash(r.block)}, field{"Content-Type", r.contentType},
		field{"Content-Length", strconv.Itoa(len(r.block))},
	)
	head := append(appendFields([]byte("WARC/1.1\r\n"), fields), "\r\n"...)
	a.zip.Reset(a.w)
	for _, part := range [][]byte{head, r.block, []byte("\r\n\r\n")} {
		if _, err := a.zip.Write(part); err != nil {
			return "", err
		}
	}
	return id, a.zip.Close()
}

// appendFields appends a line for each field with a valid name.
func appendFields(b []byte, fields []field) []byte {
	for _, f := range fields {
		odd := func(r rune) bool { return r <= ' ' || r >= 0x7f || r == ':' }
		if f.name != "" && !strings.ContainsFunc(f.name, odd) {
			b = fmt.Appendf(b, "%s: %s\r\n", f.name, fieldValue(f.value))
		}
	}
	return b
}

// fieldValue replaces control characters, which could end the line.
func fieldValue(s string) string {
	isControl := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	if !strings.ContainsFunc(s, isControl) {
		return s
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if isControl(r) {
			return ' '
		}
		return r
	}, s))
}
