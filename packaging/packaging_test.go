// Package packaging only has tests: the files for operators must match the program.
package packaging

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/ibidhq/ibid/internal/testenv"
)

func read(t *testing.T, elements ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{testenv.Root(t)}, elements...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Rules and panels only use existing metrics.
func TestMetrics(t *testing.T) {
	known := read(t, "docs", "metrics.md")
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "packaging", "grafana.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	asked := map[string]string{}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			asked["panel "+panel.Title+": "+target.Expr] = target.Expr
		}
	}
	var alerts struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "packaging", "alerts.yaml")), &alerts); err != nil {
		t.Fatal(err)
	}
	for _, rule := range alerts.Groups[0].Rules {
		asked["alert "+rule.Alert] = rule.Expr
	}
	if len(asked) < 20 {
		t.Fatalf("found only %d queries", len(asked))
	}
	name := regexp.MustCompile(`\bibid_[a-z_]+`)
	for _, where := range slices.Sorted(maps.Keys(asked)) {
		for _, metric := range name.FindAllString(asked[where], -1) {
			if !strings.Contains(known, "`"+strings.TrimSuffix(metric, "_bucket")+"`") {
				t.Errorf("%s: unknown metric %s", where, metric)
			}
		}
	}
}

// The manifest for Kubernetes is YAML, and only uses existing flags and variables.
func TestKubernetes(t *testing.T) {
	kinds := map[string]int{}
	decoder := yaml.NewDecoder(strings.NewReader(read(t, "packaging", "kubernetes.yaml")))
	for {
		var object struct {
			Kind     string
			Metadata struct{ Name string }
			Data     map[string]string
		}
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		kinds[object.Kind]++
		if object.Kind == "ConfigMap" {
			settings := map[string]any{}
			if err := yaml.Unmarshal([]byte(object.Data["ibid.yaml"]), &settings); err != nil {
				t.Fatal(err)
			}
			for name := range settings {
				if flags := read(t, "docs", "cli.md"); name != "retention" && !strings.Contains(flags, "--"+name+" ") {
					t.Errorf("unknown setting %s", name)
				}
			}
		}
	}
	for _, kind := range []string{"Secret", "ConfigMap", "Service", "StatefulSet", "PodDisruptionBudget"} {
		if kinds[kind] == 0 {
			t.Errorf("no %s", kind)
		}
	}
}

// The variables set in the files belong to flags, and command lines only use existing flags.
func TestFlags(t *testing.T) {
	flags := read(t, "docs", "cli.md")
	variable := regexp.MustCompile(`\bIBID_[A-Z_]+`)
	option := regexp.MustCompile(` --([a-z][a-z-]+)`)
	for _, file := range []string{"Containerfile", "ibid.service", "kubernetes.yaml"} {
		text := read(t, "packaging", file)
		for _, name := range variable.FindAllString(text, -1) {
			flag := "--" + strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, "IBID_")), "_", "-") + " "
			if name != "IBID_BOOTSTRAP_TOKEN" && name != "IBID_STREAM_KEY" && !strings.Contains(flags, flag) {
				t.Errorf("%s: %s belongs to no flag", file, name)
			}
		}
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "ExecStart") {
				continue
			}
			for _, found := range option.FindAllStringSubmatch(line, -1) {
				if !strings.Contains(flags, "--"+found[1]) {
					t.Errorf("%s: unknown flag --%s", file, found[1])
				}
			}
		}
	}
}
