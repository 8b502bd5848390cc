package snapshot_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

// The example of the attribution specification: a page, its text, and a manifest with the hashes and an excerpt's place.
func TestGolden(t *testing.T) {
	dir := filepath.Join(testenv.Shared(t), "spec", "golden")
	read := func(name string) []byte {
		t.Helper()
		b := testenv.Must(os.ReadFile(filepath.Join(dir, name)))(t)
		return b
	}
	page := testenv.Must(snapshot.Extract(read("source.html"), &snapshot.TextOptions{MediaType: "text/html; charset=utf-8"}))(t)
	testenv.Diff(t, "text", page.Content, string(read("source.text")))
	var manifest struct {
		Sources []struct {
			TextHash   string `json:"text_hash"`
			TextLength int    `json:"text_length"`
		}
		Claims []struct {
			Sources []struct {
				ExcerptOffset [2]int `json:"excerpt_offset"`
				Excerpt       struct{ Exact, Prefix, Suffix string }
			}
		}
	}
	testenv.OK(t, json.Unmarshal(read("manifest.json"), &manifest))
	sum := sha256.Sum256([]byte(page.Content))
	if got, want := "sha256:"+hex.EncodeToString(sum[:]), manifest.Sources[0].TextHash; got != want {
		t.Errorf("text_hash = %s, want %s", got, want)
	}
	if got, want := utf8.RuneCountInString(page.Content), manifest.Sources[0].TextLength; got != want {
		t.Errorf("text_length = %d, want %d", got, want)
	}
	cited := manifest.Claims[0].Sources[0]
	runes := []rune(page.Content)
	if got := string(runes[cited.ExcerptOffset[0]:cited.ExcerptOffset[1]]); got != cited.Excerpt.Exact {
		t.Errorf("excerpt = %q, want %q", got, cited.Excerpt.Exact)
	}
}
