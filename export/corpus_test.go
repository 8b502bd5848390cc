package export_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/export"
	"github.com/ibidhq/ibid/internal/testenv"
)

// TestCorpus writes every recording in OpenAI's format and reads it again: text and spans must be the same for all
// providers.
func TestCorpus(t *testing.T) {
	answers := 0
	testenv.OK(t, filepath.WalkDir(filepath.Join(testenv.Shared(t), "corpus"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		a, _ := ibid.Decode(body, nil) // some are lists of recordings, or break off
		if a == nil || len(a.Citations) == 0 {
			return nil
		}
		answers++
		a = export.Parted(a)
		got, err := ibid.Decode([]byte(write(t, export.OpenAI, a, nil)), nil)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		if diff := cmp.Diff(a.Text, got.Text); diff != "" {
			t.Errorf("%s: text (-written +read):\n%s", path, diff)
		}
		if diff := cmp.Diff(spans(a), spans(got)); diff != "" {
			t.Errorf("%s: spans (-written +read):\n%s", path, diff)
		}
		return nil
	}))
	if t.Logf("%d answers with citations", answers); answers == 0 {
		t.Error("no recording has a citation")
	}
}

// spans returns the spans of a's citations.
func spans(a *ibid.Answer) map[ibid.Span]bool {
	all := map[ibid.Span]bool{}
	for i := range a.Citations {
		if c := &a.Citations[i]; c.Placed() {
			all[c.Span] = true
		}
	}
	maps.DeleteFunc(all, func(s ibid.Span, _ bool) bool { return s == ibid.Span{} }) // 0 to 0 means that there is none
	return all
}
