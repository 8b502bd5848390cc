package watch_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/watch"
)

func storeCall(t *testing.T, s *store.Store, id, provider string) {
	t.Helper()
	testenv.OK(t, s.Put(t.Context(), []*store.Call{{
		AnswerID: id, Tenant: store.DefaultTenant, Upstream: provider, Status: 200, Started: time.Now(),
		Answer: &ibid.Answer{Provider: provider, Text: "Herons build in March.", Complete: true},
	}}))
}

// Old answers are removed soon after the start and every hour; removals and failures are logged.
func TestRetention(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ibid.db")
	synctest.Test(t, func(t *testing.T) {
		s := testenv.Must(store.Open(t.Context(), path, nil))(t)
		defer s.Close()
		storeCall(t, s, "ans_1", "gemini")
		storeCall(t, s, "ans_2", "openai")
		time.Sleep(50 * time.Minute)
		storeCall(t, s, "ans_3", "gemini")

		log := &lines{note: make(chan struct{}, 1000)}
		r := &watch.Retention{
			Store: s, Logger: slog.New(slog.NewTextHandler(log, nil)),
			Keep: store.Retention{ByProvider: map[string]time.Duration{"gemini": 50 * time.Minute}, DryRun: true, Now: time.Unix(0, 0)},
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		began := time.Now()
		go func() { done <- r.Run(ctx) }()
		<-log.note
		if delay := time.Since(began); delay > 5*time.Minute {
			t.Errorf("the first time was after %s", delay)
		}
		for id, want := range map[string]bool{"ans_1": false, "ans_2": true, "ans_3": true} {
			if _, err := s.Call(t.Context(), store.DefaultTenant, id); (err == nil) != want {
				t.Errorf("%s is there: %t, %v", id, !want, err)
			}
		}
		first := time.Now()
		<-log.note
		if pause := time.Since(first); pause != time.Hour {
			t.Errorf("the second time was %s after the first", pause)
		}
		if _, err := s.Call(t.Context(), store.DefaultTenant, "ans_3"); err == nil {
			t.Error("ans_3 is there")
		}
		if text := log.String(); strings.Count(text, "removed old answers") != 2 || strings.Count(text, "answers=1") != 2 {
			t.Errorf("logged:\n%s", text)
		}
		s.Close()
		<-log.note
		if text := log.String(); !strings.Contains(text, "could not be removed") {
			t.Errorf("logged:\n%s", text)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// Without a limit answers are kept for ever. The memory of verifiers is pruned all the same, silently.
func TestRetentionForEver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ibid.db")
	synctest.Test(t, func(t *testing.T) {
		s := testenv.Must(store.Open(t.Context(), path, nil))(t)
		defer s.Close()
		storeCall(t, s, "ans_1", "gemini")
		memory := s.Memory(store.DefaultTenant)
		for _, kind := range []string{"verdict", "manifest"} {
			testenv.OK(t, memory.Replace(t.Context(), kind, "k", []byte("v")))
		}
		time.Sleep(31 * 24 * time.Hour)
		log := &lines{note: make(chan struct{}, 1000)}
		r := &watch.Retention{
			Store: s, Logger: slog.New(slog.NewTextHandler(log, nil)), Keep: store.Retention{Default: -1, ByProvider: map[string]time.Duration{"gemini": 0}},
		}
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
		defer cancel()
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
		if _, err := s.Call(t.Context(), store.DefaultTenant, "ans_1"); err != nil {
			t.Error(err)
		}
		for kind, want := range map[string]string{"verdict": "", "manifest": "v"} {
			if got, err := memory.Recall(t.Context(), kind, "k"); string(got) != want || err != nil {
				t.Errorf("%s: %q, %v", kind, got, err)
			}
		}
		if text := log.String(); text != "" {
			t.Errorf("logged:\n%s", text)
		}
	})
}

// The clock jumps forward by an hour and back: no answer is removed early, and each is removed in the end.
func TestRetentionClock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ibid.db")
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		s := testenv.Must(store.Open(t.Context(), path, &store.Options{Now: now}))(t)
		defer s.Close()
		storeCall(t, s, "ans_1", "gemini")
		log := &lines{note: make(chan struct{}, 1000)}
		r := &watch.Retention{
			Store: s, Logger: slog.New(slog.NewTextHandler(log, nil)), Keep: store.Retention{Default: 150 * time.Minute},
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		isThere := func() bool {
			_, err := s.Call(t.Context(), store.DefaultTenant, "ans_1")
			return err == nil
		}
		time.Sleep(time.Hour + 10*time.Minute) // two passes
		ahead.Store(int64(2 * time.Hour))
		<-log.note // the third pass, after two hours, when the clock shows four
		if !isThere() || !strings.Contains(log.String(), "the clock has jumped") {
			t.Errorf("it is removed early: %s", log.String())
		}
		ahead.Store(0)
		time.Sleep(10 * time.Minute)
		if !isThere() {
			t.Error("it is removed early when the clock is right again")
		}
		for isThere() {
			time.Sleep(10 * time.Minute)
		}
		cancel()
		testenv.OK(t, <-done)
	})
}
