package ibid

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

// TestLiveCorpus writes every recorded stream while it is decoded. The output must contain the text exactly, and no
// marker in a wrong place. The test logs how many citations have their markers in the text.
func TestLiveCorpus(t *testing.T) {
	dir := filepath.Join(testenv.Shared(t), "corpus")
	manifest, err := os.ReadFile(filepath.Join(dir, "MANIFEST.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	type count struct{ inText, behind int }
	counts := map[string]*count{}
	for line := range strings.Lines(string(manifest)) {
		fields := strings.Split(line, "\t")
		if len(fields) < 4 || fields[3] != "y" {
			continue
		}
		file := filepath.Join(dir, filepath.FromSlash(fields[0]))
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".jsonl") {
			continue // decoded binary messages
		}
		request, _ := os.ReadFile(strings.TrimSuffix(file, filepath.Ext(file)) + ".request.json") // most have none
		t.Run(fields[0], func(t *testing.T) {
			a, out := playCorpus(t, body, request)
			linked := slices.ContainsFunc(a.Citations, func(c Citation) bool { return c.Covers == CoversLink })
			if linked {
				checkLiveLinks(t, a, out)
			} else {
				checkLiveText(t, a, out)
			}
			c := counts[fields[1]]
			if c == nil {
				c = &count{}
				counts[fields[1]] = c
			}
			behind := lateCount(a, out)
			c.behind += behind
			for i := range a.Citations {
				if a.Citations[i].Placed() {
					c.inText++
				}
			}
			c.inText -= behind
		})
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%-10s in the text %3d, in the list %3d", name, counts[name].inText, counts[name].behind)
	}
}

// playCorpus decodes a stream, replacing the ids of its sources by ones that occur in no text.
func playCorpus(t *testing.T, body, request []byte) (*Answer, string) {
	t.Helper()
	ids := map[string]string{}
	rename := func(id string) string {
		if ids[id] == "" {
			ids[id] = fmt.Sprintf("§%d§", len(ids))
		}
		return ids[id]
	}
	cite := func(c Citation) Citation {
		c.Refs = slices.Clone(c.Refs)
		for i := range c.Refs {
			c.Refs[i].Source = rename(c.Refs[i].Source)
		}
		return c
	}
	var out bytes.Buffer
	var answer *Answer
	live := Live{W: &out, Style: StylePlain, ByID: true, List: true}
	d := Decoder{Options: DecodeOptions{Request: request}, OnEvent: func(e Event) {
		switch {
		case e.Source != nil:
			s := *e.Source
			s.ID = rename(s.ID)
			e.Source = &s
		case e.Citation != nil:
			c := cite(*e.Citation)
			e.Citation = &c
		case e.Answer != nil:
			a := *e.Answer
			a.Sources, a.Citations = slices.Clone(a.Sources), slices.Clone(a.Citations)
			for i := range a.Sources {
				a.Sources[i].ID = rename(a.Sources[i].ID)
			}
			for i := range a.Citations {
				a.Citations[i] = cite(a.Citations[i])
			}
			e.Answer, answer = &a, &a
		}
		live.Event(e)
	}}
	_, _ = d.Write(body)
	_ = d.Close()
	if err := live.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	return answer, out.String()
}

// lateCount returns how many citations are in the list after the text.
func lateCount(a *Answer, out string) int {
	_, list, _ := strings.Cut(out, "\n\n"+lateHeading+":\n\n")
	n := 0
	for i := range a.Citations {
		c := &a.Citations[i]
		if c.Placed() && strings.Contains(list, quoted(a.Text, c.Claim)+" [") {
			n++
		}
	}
	return n
}

// checkLiveLinks checks that only visible links are missing from the text, and nothing was added.
func checkLiveLinks(t *testing.T, a *Answer, out string) {
	t.Helper()
	out = regexp.MustCompile(` ?\[§\d+§\]`).ReplaceAllString(out, "")
	at := 0
	for i := range a.Citations {
		s := a.Citations[i].Span
		if a.Citations[i].Covers != CoversLink || !a.Citations[i].Placed() || s.Start < at {
			continue
		}
		words := strings.TrimRight(a.Text[at:s.Start], " (.")
		n := strings.Index(out, words)
		if n < 0 || n > s.Len()+8 {
			t.Fatalf("%q is missing in %q", words, out)
		}
		out, at = out[n+len(words):], s.End
	}
	if words := strings.TrimLeft(a.Text[at:], ")."); !strings.Contains(out, words) {
		t.Errorf("%q is missing in %q", words, out)
	}
}
