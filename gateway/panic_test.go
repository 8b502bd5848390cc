package gateway_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/server/servertest"
)

// brokenLog panics while an answer is kept, as a mistake of ours would.
type brokenLog struct{ slog.Handler }

func (b brokenLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "answer" {
		panic("a mistake")
	}
	return b.Handler.Handle(ctx, r)
}

// Whatever goes wrong with keeping an answer, its client gets it.
func TestPanicWhileKeeping(t *testing.T) {
	log := &servertest.Log{}
	w := newWorld(t, answerParts(chatParts("So ", "it ", "is.")...), &setup{options: gateway.Options{
		Logger: slog.New(brokenLog{slog.NewJSONHandler(log, nil)}),
	}})
	res, body := w.ask(t, nil)
	if res.StatusCode != 200 || string(body) != strings.Join(chatParts("So ", "it ", "is."), "") {
		t.Errorf("got %d %q", res.StatusCode, body)
	}
	if n := w.metric(t, "panics_total"); n != 1 {
		t.Errorf("%v panics are counted", n)
	}
	if !strings.Contains(log.String(), "brokenLog") || !strings.Contains(log.String(), res.Header.Get("Ibid-Answer")) {
		t.Errorf("the log has no stack: %s", log)
	}
	if n := w.metric(t, "held_request_bytes"); n != 0 {
		t.Errorf("%v bytes are held", n)
	}
}
