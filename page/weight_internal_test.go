package page

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/testenv"
)

// A listener who comes late waits for the missing piece to be sent again.
func TestPartialAgain(t *testing.T) {
	say := func(h *partial, at int, text string) {
		b := testenv.Must(json.Marshal(text))(t)
		h.take(&bus.Live{Kind: gateway.LiveText, At: at, Data: b})
	}
	var h partial
	var got []string
	for _, d := range []struct {
		at   int
		text string
	}{
		{7, "nest "},        // a late listener has a gap
		{0, "Herons nest "}, // and is sent it again
		{12, "in "},         // it continues
		{0, "Herons nest "}, // sent again for somebody else
		{7, "nest in trees"},
		{40, "gap"},
	} {
		say(&h, d.at, d.text)
		got = append(got, h.text.String())
	}
	want := []string{"", "Herons nest ", "Herons nest in ", "Herons nest in ", "Herons nest in trees", "Herons nest in trees"}
	testenv.Equal(t, "text", want, got)
	cite := func(key string) {
		b := testenv.Must(json.Marshal(gateway.LiveCitations{Key: key}))(t)
		h.take(&bus.Live{Kind: gateway.LiveCitation, Data: b})
	}
	for _, key := range []string{"a", "b", "a", "b"} {
		cite(key)
	}
	var keys []string
	for _, row := range h.rows {
		keys = append(keys, row.key)
	}
	testenv.Equal(t, "citations", []string{"a", "b"}, keys)
}

// An answer that was never heard of is given up soon; one that was heard of may take long. Its id has the time when it
// began.
func TestUnknownAnswerIsGivenUp(t *testing.T) {
	for _, test := range []struct {
		known bool
		quiet time.Duration
		want  string
	}{
		{false, liveUnknown - time.Second, ""},
		{false, liveUnknown + time.Second, "nothing of it was kept"},
		{true, liveUnknown + time.Second, ""},
		{true, liveQuiet + time.Second, "broke off"},
	} {
		w := httptest.NewRecorder()
		s := &liveStream{Stream: httpx.NewStream(w, liveWrite), known: test.known, heard: time.Now().Add(-test.quiet)}
		err := s.tick(t.Context())
		if got := w.Body.String(); !strings.Contains(got, test.want) || (test.want == "") != (got == "") || (err == nil) != (got == "") {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
	for id, want := range map[string]string{
		"ans_019aa5d2-7000-7000-8000-000000000000": "2025-11-21T09", "ans_019aa5d2-7000-4000-8000-000000000000": "", "019aa5d2-7000-7000-8000-000000000000": "",
		"ans_019AA5D2-7000-7000-8000-000000000000": "", "ans_1": "", "": "",
	} {
		at, ok := beginningOf(id)
		if got := at.UTC().Format("2006-01-02T15"); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %s, %t", id, got, ok)
		}
	}
}
