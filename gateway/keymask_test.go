package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/call"
)

// However a text with keys is split, and whatever is in between, the emitted texts have the right offsets in the masked
// text, are in order, and are complete in the end.
func TestKeyMask(t *testing.T) {
	const key = "sk-abcsk-abcd+"
	keys := call.KeysOf(http.Header{"Authorization": {"Bearer " + key}, "X-Api-Key": {key + "-long"}})
	for _, text := range []string{
		"It is " + key + ".",
		"Bearer " + key + key + "-long and sk-abcsk-abcsk-abcd%2b: sk-abc",
		key + " Bear", "Bearer sk-abcsk-abc", "ü" + key + "ü", "none of them", "s",
	} {
		for _, two := range []bool{false, true} {
			for i := 0; i <= len(text); i++ {
				for j := i; j <= len(text); j++ {
					masked := whole(keys, text)
					for _, canary := range []string{key, "abcd%2b", "sk-abcsk-abcd"} {
						if strings.Contains(masked, canary) {
							t.Fatalf("%q becomes %q", text, masked)
						}
					}
					told, order := "", ""
					m := gateway.NewKeyMask(keys, func(ev ibid.Event) {
						if ev.Kind == ibid.EventQuery {
							order += fmt.Sprintf("%s@%d ", ev.Query, len(told))
							return
						}
						if ev.At != len(told) && !two || !strings.HasPrefix(masked[len(told):], ev.Text) {
							t.Fatalf("%q|%q|%q: %q is emitted at %d of %q", text[:i], text[i:j], text[j:], ev.Text, ev.At, masked)
						}
						told += ev.Text
					})
					add := func(from, to int) {
						ev := ibid.Event{Kind: ibid.EventText, Text: text[from:to], At: from}
						if two {
							ev.Kind, ev.Index = ibid.EventActivity, 3
						}
						m.Event(ev)
					}
					add(0, i)
					m.Event(ibid.Event{Kind: ibid.EventQuery, Query: "a"})
					add(i, j)
					m.Event(ibid.Event{Kind: ibid.EventQuery, Query: "b"})
					add(j, len(text))
					m.End()
					if want := fmt.Sprintf("a@%d b@%d ", i, j); told != masked || order != want {
						t.Fatalf("emitted %q, %s, want %q, %s", told, order, masked, want)
					}
				}
			}
		}
	}
}

// whole returns the text masked in one piece.
func whole(keys call.Keys, text string) (masked string) {
	m := gateway.NewKeyMask(keys, func(ev ibid.Event) { masked += ev.Text })
	m.Event(ibid.Event{Kind: ibid.EventText, Text: text})
	m.End()
	return masked
}

// Events after the beginning of a key that is never completed are withheld only up to a limit, and then emitted.
func TestKeyMaskLimit(t *testing.T) {
	told, lost := 0, 0
	m := gateway.NewKeyMask(call.Keys{"sk-abcdefgh"}, func(ibid.Event) { told++ })
	m.Event(ibid.Event{Kind: ibid.EventText, Text: "Your key is sk-abc"})
	for range 2 * gateway.MaxWithheld {
		if !m.Event(ibid.Event{Kind: ibid.EventQuery}) {
			lost++
		}
	}
	if told != 1 || lost != gateway.MaxWithheld+1 {
		t.Errorf("%d emitted, %d lost", told, lost)
	}
	if !m.Event(ibid.Event{Kind: ibid.EventText, Text: "x", At: 18}) || told != 1+1+gateway.MaxWithheld {
		t.Errorf("%d emitted", told)
	}
}
