package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server"
)

const metricsHead = `<!-- Written by go generate from what the gateway registers: change that, and run make generate. -->

# The metrics of ibid serve

` + "`GET /metrics`" + ` shows these as Prometheus reads them, besides those of the Go runtime and of the process (` + "`go_…`" + `, ` + "`process_…`" + `).
Names that end in ` + "`_total`" + ` are counters, ` + "`ibid_gateway_end_mark_wait_seconds`" + ` is a histogram, the others are gauges. Most counters with
labels are there from their first event on. Labels hold names from the configuration, patterns of routes and words of ibid's
own, never what a client or a provider sent: ` + "`class`" + ` is ` + "`2xx`" + ` and so on, or ` + "`none`" + ` where there was no response.

Worth an alarm: ` + "`ibid_gateway_capture_failures_total`" + ` and ` + "`ibid_gateway_set_aside_total`" + ` rise (answers are lost or stuck),
` + "`ibid_gateway_indexer_lag_seconds`" + ` stays above a minute (the store is away or too slow), ` + "`ibid_gateway_journal_bytes`" + `
nears 8 GiB.

`

// docs/metrics.md is what a gateway registers.
func TestMetricsDocs(t *testing.T) {
	c := server.Defaults()
	c.Data = t.TempDir()
	c.Publish.Recheck = 24 * time.Hour
	c.Upstreams["openai"] = &server.Upstream{Backfill: []server.Backfill{{Provider: "gemini", Model: "m"}}}
	testenv.OK(t, c.Resolve(nil, func(string) (string, bool) { return "", false }))
	d := testenv.Must(server.Open(t.Context(), c, nil))(t)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	got := metricsHead + metricsTable(t, d.Metrics)
	name := filepath.Join(testenv.Root(t), "docs", "metrics.md")
	if *update {
		testenv.OK(t, os.WriteFile(name, []byte(got), 0o666))
		return
	}
	page := testenv.Must(os.ReadFile(name))(t)
	if diff := cmp.Diff(string(page), got); diff != "" {
		t.Errorf("docs/metrics.md is out of date, make generate writes it (-is +should be):\n%s", diff)
	}
}

// metricsTable returns a line for each metric of ours, those that have no value yet, too.
func metricsTable(t *testing.T, r *prometheus.Registry) string {
	t.Helper()
	words := regexp.MustCompile(`fqName: "(\w+)", help: "(.*?)", .*variableLabels: \{(.*)\}\}$`)
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		r.Describe(descriptions)
	}()
	var lines []string
	for description := range descriptions {
		m := words.FindStringSubmatch(description.String())
		if m == nil {
			t.Fatalf("%s is written in another way", description)
		}
		name, help, labels := m[1], m[2], m[3]
		if !strings.HasPrefix(name, "ibid_") {
			continue
		}
		if labels != "" {
			labels = " (`" + strings.ReplaceAll(labels, ",", "`, `") + "`)"
		}
		lines = append(lines, fmt.Sprintf("- `%s`%s: %s\n", name, labels, help))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
