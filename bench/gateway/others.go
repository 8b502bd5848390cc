package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// other is a third-party program to compare with. It accepts calls at /v1/chat/completions.
type other struct {
	header string // additional HTTP header lines of each call; known once the program is started
	// argv writes the configuration into dir and returns the command line. The program listens on addr, in the
	// foreground and as one process, so that its CPU time can be read, and sends calls to base, which is the upstream's
	// URL up to /chat/completions.
	argv func(dir, addr, base string) ([]string, error)
}

// othersDir is where scripts/bench-others installs the programs that Debian does not package.
const othersDir = "../../out/others"

// others returns the installed programs to compare with. Two only relay, like ReverseProxy; the others are gateways for
// language models, which parse and rewrite each answer.
func others() []target {
	npm, _ := filepath.Abs(filepath.Join(othersDir, "npm/node_modules/@portkey-ai/gateway/build/start-server.js"))
	litellm, _ := filepath.Abs(filepath.Join(othersDir, "python/bin/litellm"))
	all := []struct {
		program string
		target  target
	}{
		{"nginx", target{name: "nginx", other: &other{argv: nginx}}},
		{"haproxy", target{name: "HAProxy", other: &other{argv: haproxy}}},
		{npm, target{name: "Portkey", other: portkey(npm)}},
		{litellm, target{name: "LiteLLM", other: &other{argv: liteLLM(litellm)}}},
	}
	var found []target
	for _, o := range all {
		program := o.program
		if !filepath.IsAbs(program) {
			program, _ = exec.LookPath(program)
		}
		if _, err := os.Stat(program); err == nil {
			found = append(found, o.target)
		} else {
			fmt.Fprintf(os.Stderr, "%s is left out: scripts/bench-others installs it\n", o.target.name)
		}
	}
	return found
}

// startOther starts a third-party program alone on the proxy's core.
func startOther(ctx context.Context, dir, base string, t target) (*process, error) {
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	if dir, err = os.MkdirTemp(dir, t.name); err != nil {
		return nil, err
	}
	argv, err := t.other.argv(dir, addr, base)
	if err != nil {
		return nil, err
	}
	proxy, err := start(ctx, 0, t.name, argv)
	if err != nil {
		return nil, err
	}
	proxy.other = t.other
	return proxy, proxy.listening(ctx, addr)
}

// hostAndPath splits the URL of the upstream.
func hostAndPath(base string) (host, path string) {
	host, path, _ = strings.Cut(strings.TrimPrefix(base, "http://"), "/")
	return host, "/" + path
}

func nginx(dir, addr, base string) ([]string, error) {
	host, path := hostAndPath(base)
	config := fmt.Sprintf(`daemon off;
master_process off;
worker_processes 1;
worker_rlimit_nofile 20000;
pid %[1]s/pid;
error_log stderr warn;
events { worker_connections 10000; }
http {
	access_log off;
	client_body_temp_path %[1]s;
	proxy_temp_path %[1]s;
	keepalive_requests 1000000;
	upstream model { server %[2]s; keepalive 1000; keepalive_requests 1000000; }
	server {
		listen %[3]s;
		location /v1/ {
			proxy_pass http://model%[4]s/;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_buffering off;
		}
	}
}
`, dir, host, addr, path)
	name := filepath.Join(dir, "nginx.conf")
	return []string{"nginx", "-p", dir, "-c", name}, os.WriteFile(name, []byte(config), 0o600)
}

func haproxy(dir, addr, base string) ([]string, error) {
	host, path := hostAndPath(base)
	config := fmt.Sprintf(`global
	nbthread 1
	maxconn 8000
defaults
	mode http
	timeout connect 10s
	timeout client 60s
	timeout server 60s
	http-reuse always
	option http-no-delay
frontend calls
	bind %s
	http-request replace-path ^/v1(/.*)$ %s\1
	default_backend model
backend model
	server one %s
`, addr, strings.ReplaceAll(path, `\`, `\\`), host)
	name := filepath.Join(dir, "haproxy.cfg")
	return []string{"haproxy", "-db", "-f", name}, os.WriteFile(name, []byte(config), 0o600)
}

// portkey is Portkey's gateway; each call names its upstream.
func portkey(script string) *other {
	o := &other{}
	o.argv = func(_, addr, base string) ([]string, error) {
		_, port, found := strings.Cut(addr, ":")
		if !found {
			return nil, errors.New("the address has no port")
		}
		o.header = "x-portkey-provider: openai\r\nx-portkey-custom-host: " + base + "\r\n"
		return []string{"node", script, "--headless", "--port=" + port}, nil
	}
	return o
}

func liteLLM(program string) func(dir, addr, base string) ([]string, error) {
	return func(dir, addr, base string) ([]string, error) {
		host, port, _ := strings.Cut(addr, ":")
		config := fmt.Sprintf(`model_list:
  - model_name: gpt-4o
    litellm_params: {model: openai/gpt-4o, api_base: "%s", api_key: any}
litellm_settings: {telemetry: false}
general_settings: {dangerously_permit_weak_or_unset_master_key: true}
`, base)
		name := filepath.Join(dir, "litellm.yaml")
		// The package also contains what it would download at startup.
		argv := []string{
			"env", "LITELLM_LOCAL_MODEL_COST_MAP=True", "LITELLM_LOG=ERROR", "LITELLM_MASTER_KEY=" + benchKey,
			program, "--config", name, "--host", host, "--port", port, "--telemetry", "False",
		}
		return argv, os.WriteFile(name, []byte(config), 0o600)
	}
}
