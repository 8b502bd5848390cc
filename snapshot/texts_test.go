package snapshot_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/ibidhq/ibid/snapshot"
)

func page(body, mediaType string) *snapshot.Snapshot {
	return &snapshot.Snapshot{FinalURL: "https://x.example/a", MediaType: mediaType, Octets: []byte(body), Hash: snapshot.Hash([]byte(body))}
}

func TestTexts(t *testing.T) {
	var texts snapshot.Texts
	a, hash, err := texts.Of(page("<p>a b", "text/html; charset=utf-8"))
	if err != nil || a.Content != "a b" || hash != snapshot.Hash([]byte("a b")) {
		t.Fatalf("%v, %q, %v", a, hash, err)
	}
	same := page("<p>a b", "text/html; charset=utf-8")
	same.Hash = ""
	if b, _, _ := texts.Of(same); b != a {
		t.Error("read twice")
	}
	if b, _, _ := texts.Of(page("<p>a b", "text/plain")); b == a || b.Content != "<p>a b" {
		t.Errorf("as another type: %q", b.Content)
	}
	typed := page("# a", "application/octet-stream")
	md, _, _ := texts.Of(typed)
	typed.FinalURL = "https://x.example/a.txt?x=y.md"
	if txt, _, _ := texts.Of(typed); txt == md || txt.MediaType != "text/plain" {
		t.Errorf("under another name: %s", txt.MediaType)
	}
	for range 2 {
		if b, hash, err := texts.Of(page(strings.Repeat("<div>", 600), "text/html")); b != nil || hash != "" || !errors.Is(err, snapshot.ErrTooDeep) {
			t.Errorf("%v, %q, %v", b, hash, err)
		}
	}
	var none *snapshot.Texts
	if b, hash2, err := none.Of(page("<p>a b", "text/html")); err != nil || b.Content != "a b" || hash2 != hash {
		t.Errorf("without memory: %v, %v", b, err)
	}
}

// What was used last stays; the whole is bounded.
func TestTextsLimit(t *testing.T) {
	texts := snapshot.Texts{Limit: 8 << 10}
	doc := func(i int) *snapshot.Snapshot {
		return page(fmt.Sprintf("%d %s", i, strings.Repeat("x", 1000)), "text/plain")
	}
	first, _, _ := texts.Of(doc(0))
	for i := 1; i < 20; i++ {
		if _, _, err := texts.Of(doc(i)); err != nil {
			t.Fatal(err)
		}
		if again, _, _ := texts.Of(doc(0)); again != first {
			t.Fatalf("used just now, forgotten after %d", i)
		}
	}
	second, _, _ := texts.Of(doc(1))
	if third, _, _ := texts.Of(doc(1)); third != second {
		t.Error("not remembered")
	}
	for i := 2; i < 20; i++ {
		texts.Of(doc(i))
	}
	if again, _, _ := texts.Of(doc(0)); again == first {
		t.Error("nothing was forgotten")
	}
	small := snapshot.Texts{Limit: 1}
	a, _, _ := small.Of(doc(1))
	if b, _, _ := small.Of(doc(1)); a == b {
		t.Error("larger than the limit, and remembered")
	}
}

func TestTextsConcurrently(t *testing.T) {
	texts := snapshot.Texts{Limit: 64 << 10}
	var wg sync.WaitGroup
	var seen sync.Map
	for i := range 16 {
		wg.Go(func() {
			for j := range 200 {
				text, hash, err := texts.Of(page(fmt.Sprintf("<p>page %d", (i+j)%8), "text/html"))
				if err != nil || hash != snapshot.Hash([]byte(text.Content)) {
					t.Errorf("%v, %v", text, err)
				}
				if other, loaded := seen.LoadOrStore(hash, text); loaded && other != text {
					t.Error("read twice")
				}
			}
		})
	}
	wg.Wait()
}

// What is made of a text is made once, for as long as the text is remembered, and is bounded apart from the texts.
func TestTextsBeside(t *testing.T) {
	made := 0
	of := func(size int64) func() (any, int64) {
		return func() (any, int64) {
			made++
			return made, size
		}
	}
	texts := snapshot.Texts{Limit: 16 << 10}
	list := make([]*snapshot.Text, 8)
	for i := range list {
		list[i], _, _ = texts.Of(page(fmt.Sprintf("<p>page %d", i), "text/html"))
		for range 2 {
			if v := texts.Beside(list[i], of(1<<10)); v != i+1 {
				t.Fatalf("text %d: %v, made %d times", i, v, made)
			}
		}
	}
	if texts.Beside(list[7], of(0)); made != 8 {
		t.Error("forgotten though there is room")
	}
	big, _, _ := texts.Of(page("<p>big", "text/html"))
	texts.Beside(big, of(15<<10))
	if v := texts.Beside(list[0], of(1)); v != 10 {
		t.Errorf("nothing made room: %v", v)
	}
	if again, _, _ := texts.Of(page("<p>page 0", "text/html")); again != list[0] {
		t.Error("a text made room for what stands beside others")
	}
	if v := texts.Beside(big, of(1)); v != 9 {
		t.Errorf("used last, and forgotten: %v", v)
	}
	for i := range 64 {
		texts.Of(page(fmt.Sprintf("other %d", i), "text/plain"))
	}
	if v := texts.Beside(big, of(1)); v != 11 {
		t.Errorf("the text is forgotten, and this is not: %v", v)
	}
	var none *snapshot.Texts
	if none.Beside(big, of(1)); made != 12 {
		t.Error("a nil Texts remembers")
	}
}
