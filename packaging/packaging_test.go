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

// The composition is one of ibid, PostgreSQL and NATS, its command only uses existing flags, and its names refer to
// something.
func TestCompose(t *testing.T) {
	var c struct {
		Services map[string]struct {
			Image     string
			Build     struct{ Context, Dockerfile string }
			Command   []string
			Volumes   []string
			DependsOn []string `yaml:"depends_on"`
			// what else a service may have
			Environment map[string]string
			Ports       []string
			Restart     string
			Stop        string `yaml:"stop_grace_period"`
			Ulimits     map[string]int
		}
		Volumes map[string]any
	}
	if err := yaml.UnmarshalWithOptions([]byte(read(t, "packaging", "compose.yaml")), &c, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(c.Services)); !slices.Equal(got, []string{"ibid", "nats", "postgres"}) {
		t.Errorf("services %q", got)
	}
	for name, s := range c.Services {
		if built := s.Build.Dockerfile != ""; built == (s.Image != "") {
			t.Errorf("%s: image %q, build %q", name, s.Image, s.Build.Dockerfile)
		}
		for _, other := range s.DependsOn {
			if _, ok := c.Services[other]; !ok {
				t.Errorf("%s depends on %s", name, other)
			}
		}
		for _, v := range s.Volumes {
			if volume, _, _ := strings.Cut(v, ":"); len(c.Volumes) != 2 || !slices.Contains(slices.Collect(maps.Keys(c.Volumes)), volume) {
				t.Errorf("%s: no volume %s", name, volume)
			}
		}
	}
	ibid := c.Services["ibid"]
	read(t, "packaging", ibid.Build.Context, ibid.Build.Dockerfile)
	for _, flag := range ibid.Command {
		if strings.HasPrefix(flag, "--") && !strings.Contains(read(t, "docs", "cli.md"), "`"+flag+" ") {
			t.Errorf("unknown flag %s", flag)
		}
	}
	for _, p := range ibid.Ports {
		if !strings.HasPrefix(p, "127.0.0.1:") {
			t.Errorf("port %s is open to the network", p)
		}
	}
}

// The samples for proxies in front of ibid pass on each byte as it comes.
func TestProxies(t *testing.T) {
	for file, words := range map[string][]string{
		"nginx.conf": {"proxy_buffering off;", "proxy_request_buffering off;", "proxy_http_version 1.1;", "proxy_set_header Host $host;"},
		"Caddyfile":  {"flush_interval -1", "compression off"},
	} {
		text := read(t, "packaging", file)
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q", file, w)
			}
		}
		if strings.Count(text, "{") != strings.Count(text, "}") {
			t.Errorf("%s: braces do not match", file)
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
