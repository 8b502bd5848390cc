package watch_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/watch"
)

// A source that ends the process reading it does so three times. The fourth start does not meet it, and reads the
// others. The processes are real, and killed.
func TestSourceEndsProcess(t *testing.T) {
	const variable = "IBID_TEST_SOURCE_ENDS_PROCESS" // set in the child process: the database, and how late it is
	begin := func(dsn string, late time.Duration) *store.Store {
		now := func() time.Time { return time.Now().Add(late) }
		return testenv.Must(store.Open(t.Context(), dsn, &store.Options{Track: true, Now: now, Wait: time.Minute}))(t)
	}
	read := func(s *store.Store) (stop func()) {
		f := testenv.Must(watch.NewFreshness(&watch.FreshnessOptions{
			Store: s, Fetcher: fetcher(t, snapshot.FetchOptions{}), Every: 24 * time.Hour,
		}))(t)
		return start(t, f.Run)
	}
	if dsn, late, ok := strings.Cut(os.Getenv(variable), " "); ok {
		read(begin(dsn, testenv.Must(time.ParseDuration(late))(t)))
		time.Sleep(time.Minute) // it is killed before
		return
	}

	var met atomic.Int32
	var mu sync.Mutex
	var child *os.Process
	others := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch r.URL.Path {
		case "/robots.txt":
			http.NotFound(w, r)
			return
		case "/deadly":
			met.Add(1)
			_ = child.Kill()
			return
		}
		others[r.URL.Path] = true
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(tidePage))
	}))
	defer server.Close()

	dsn := filepath.Join(t.TempDir(), "ibid.db")
	s := begin(dsn, 0)
	urls := []string{server.URL + "/a", server.URL + "/b", server.URL + "/deadly", server.URL + "/c"}
	put(t, s, cites(t, "ans_1", "", urls...))
	testenv.OK(t, s.Close())
	const later = 6 * time.Minute // longer than a lease
	for n := range store.MaxDeaths {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSourceEndsProcess$")
		c.Env = append(os.Environ(), variable+"="+dsn+" "+(time.Duration(n)*later).String())
		mu.Lock()
		err := c.Start()
		child = c.Process
		mu.Unlock()
		testenv.OK(t, err)
		if err = c.Wait(); err == nil || met.Load() != int32(n+1) {
			t.Fatalf("start %d: %v, met %d times", n+1, err, met.Load())
		}
	}
	s = begin(dsn, store.MaxDeaths*later)
	defer s.Close()
	stop := read(s)
	testenv.Until(t, "it is set aside", func() bool {
		return len(testenv.Must(s.Alerts(t.Context(), store.DefaultTenant, &store.AlertQuery{Kind: store.AlertSetAside}))(t).Items) == 1
	})
	testenv.Until(t, "the others are read", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(others) == 3
	})
	stop()
	if met.Load() != store.MaxDeaths {
		t.Errorf("it was met %d times", met.Load())
	}
}
