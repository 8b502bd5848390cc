package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
)

// Bounds of what is read as sources in one call.
const (
	maxSourceFiles = 10_000
	maxSourceBytes = 512 << 20
)

// readAnswer reads the answer: a document of ibid's, or whatever ibid cite reads.
func (job *attributeJob) readAnswer() (*ibid.Answer, error) {
	in, err := openInput(job.answer, job.in, nil)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxUnpacked+1))
	switch {
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, bare(err)
	case len(data) > maxUnpacked:
		return nil, errLarge
	}
	if isDocument(data) {
		a := &ibid.Answer{}
		if err := json.Unmarshal(data, a); err != nil {
			return nil, fmt.Errorf("read the answer document: %w", err)
		}
		return a, nil
	}
	decode := job.decode
	decode.Status = in.status
	a, decodeErr := ibid.Decode(data, &decode)
	if bad := judge(a, err, decodeErr, job.decode.Format); bad != nil {
		return nil, bad
	}
	if !a.Complete {
		say(job.err, "%s: the answer breaks off; what could be read of it is used", job.answer)
	}
	return a, nil
}

// isDocument reports whether bytes are an answer document: one object with the members that only such have.
func isDocument(data []byte) bool {
	var head struct {
		Version   *int            `json:"version"`
		Text      *string         `json:"text"`
		Unit      *string         `json:"unit"`
		Citations json.RawMessage `json:"citations"`
	}
	data = bytes.TrimSpace(data)
	return bytes.HasPrefix(data, []byte("{")) && json.Unmarshal(data, &head) == nil &&
		head.Version != nil && head.Text != nil && head.Unit != nil && head.Citations != nil
}

// sourceFile is a file to be read as a source.
type sourceFile struct {
	name  string
	found bool // in a directory: what is no text there is passed over
}

// readSources reads all sources. What cannot be read is said, and the others are used.
func (job *attributeJob) readSources(ctx context.Context) ([]support.Document, error) {
	files, err := job.listSources()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.name
	}
	bar := newProgress(names, job.world)
	words := job.err
	job.err = bar.words(words)
	defer func() { bar.end(); job.err = words }()
	fetcher := newPageFetcher(job.flags.allow)
	defer func() { _ = fetcher.Close() }() // nothing is lost
	var docs []support.Document
	var passed []string
	total := 0
	for _, f := range files {
		found, size, err := job.readSource(ctx, f, fetcher, bar)
		total += size
		switch {
		case total > maxSourceBytes:
			return nil, &usageError{
				fmt.Errorf("the sources have more than %d MiB", maxSourceBytes>>20), "name fewer files",
			}
		case err != nil && f.found && (errors.Is(err, snapshot.ErrUnsupported) || errors.Is(err, snapshot.ErrEmpty)):
			reason := strings.TrimPrefix(err.Error(), snapshot.ErrUnsupported.Error()+": ")
			passed = append(passed, fmt.Sprintf("%s (%s)", f.name, reason))
			job.issues = append(job.issues, ibid.Issue{Code: "passed-over", Detail: f.name + ": " + reason})
		case err != nil:
			job.unread(f.name, err)
			hint(job.err, sourceHint(err))
		}
		docs = append(docs, found...)
	}
	if len(passed) > 0 {
		text := strings.Join(passed[:min(len(passed), maxPassed)], ", ")
		if more := len(passed) - maxPassed; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		say(job.err, "%s in directories passed over: %s", plural(len(passed), "file"), text)
	}
	if len(docs) == 0 {
		return nil, &usageError{
			errors.New("no source could be read"), "sources are text, Markdown, HTML, PDF or JSON lines",
		}
	}
	return docs, nil
}

// maxPassed is how many of the files that were passed over are named to people.
const maxPassed = 3

// unread says that a source could not be read.
func (job *attributeJob) unread(name string, err error) {
	job.failed = true
	job.issues = append(job.issues, ibid.Issue{Code: "unreadable", Detail: fmt.Sprintf("%s: %v", name, err)})
	say(job.err, "read %s: %v", name, err)
}

// listSources finds the files that the names stand for.
func (job *attributeJob) listSources() ([]sourceFile, error) {
	var files []sourceFile
	for _, name := range job.sources {
		info, err := os.Stat(name)
		if name == stdinName || isURL(name) || err != nil || !info.IsDir() {
			files = append(files, sourceFile{name: name})
			continue
		}
		err = filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				job.unread(path, bare(err))
				return nil
			case strings.HasPrefix(d.Name(), ".") && path != name && d.IsDir():
				return filepath.SkipDir
			case d.Type().IsRegular() && !strings.HasPrefix(d.Name(), "."):
				files = append(files, sourceFile{name: path, found: true})
			}
			if len(files) > maxSourceFiles {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, bare(err))
		}
	}
	if len(files) > maxSourceFiles {
		return nil, &usageError{
			fmt.Errorf("the sources are more than %d files", maxSourceFiles), "name fewer directories",
		}
	}
	return files, nil
}

// readSource reads the documents of a file or a page, and says how large it is.
func (job *attributeJob) readSource(
	ctx context.Context, f sourceFile, fetcher *snapshot.Fetcher, bar *progress,
) ([]support.Document, int, error) {
	found, called, size, err := readSource(ctx, f.name, fetcher, job.in, bar.watch)
	if err != nil {
		return nil, size, err
	}
	if isURL(f.name) {
		return job.documents(called, found), size, nil
	}
	if len(found) == 1 && found[0].Source.Kind == ibid.File {
		found[0].Source.ID = called
	}
	return job.documents(f.name, found), size, nil
}

// documents makes sources of what was read under a name, and says what was odd.
func (job *attributeJob) documents(name string, found []snapshot.Document) []support.Document {
	docs := make([]support.Document, 0, len(found))
	for i := range found {
		d := &found[i]
		issues, failed := sayTextIssues(job.err, name, d.Text)
		job.issues, job.failed = append(job.issues, issues...), job.failed || failed
		docs = append(docs, support.Document{Source: d.Source, Text: d.Text.Content, Passages: d.Text.Passages(nil)})
	}
	return docs
}
