package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
)

// Text is shown as it arrives.
func TestCiteLive(t *testing.T) {
	for _, form := range []string{"markdown", "plain"} {
		in, send := io.Pipe()
		receive, out := io.Pipe()
		exit := make(chan int)
		go func() {
			w := world{in, out, io.Discard, func(string) (string, bool) { return "", false }}
			code := run(t.Context(), []string{"cite", "--as", form}, w)
			out.Close()
			exit <- code
		}()
		hung := time.AfterFunc(time.Minute, func() { receive.CloseWithError(errors.New("nothing was shown while the stream went on")) })
		first, rest, _ := strings.Cut(liveEvents, "|")
		testenv.Must(io.WriteString(send, first))(t)
		const early = "Otters hold hands.\n"
		got := make([]byte, len(early))
		if _, err := io.ReadFull(receive, got); err != nil || string(got) != early {
			t.Errorf("%s: at first: %q, %v; want %q", form, got, err, early)
		}
		hung.Stop()
		go func() {
			io.WriteString(send, rest)
			send.Close()
		}()
		late, err := io.ReadAll(receive)
		if want := "They sleep on their backs, wrapped in kelp."; err != nil || !strings.Contains(string(late), want) {
			t.Errorf("%s: then: %q, %v; want %q in it", form, late, err, want)
		}
		if code := <-exit; code != 0 {
			t.Errorf("%s: exit code %d", form, code)
		}
	}
}
