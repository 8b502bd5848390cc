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

// docs/metrics.md lists what a gateway registers.
func TestMetricsDocs(t *testing.T) {
	c := server.Defaults()
	c.Data = t.TempDir()
	c.Publish.Recheck, c.Judge = server.Recheck{Every: 24 * time.Hour}, "http://127.0.0.1:1/v1#m"
	c.Upstreams["openai"] = &server.Upstream{Backfill: []server.Backfill{{Provider: "gemini", Model: "m"}}}
	testenv.OK(t, c.Resolve(nil, func(string) (string, bool) { return "", false }))
	d := testenv.Must(server.Open(t.Context(), c, nil))(t)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	got := string(testenv.Must(os.ReadFile("testdata/metrics-head.md"))(t)) + metricsTable(t, d.Metrics)
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

// metricsTable returns a line for each metric of ours, including those without a value yet.
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
			t.Fatalf("%s has an unexpected format", description)
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
