package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ibidhq/ibid/internal/file"
	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/internal/testenv"
)

// Stories with a PostgreSQL server at $POSTGRES, which "postgres stop" crashes and "postgres start" restarts. There is
// one server per directory.
func TestPostgresScript(t *testing.T) {
	for _, dir := range []string{"testdata/postgres", "testdata/postgres_away"} {
		t.Run(filepath.Base(dir), func(t *testing.T) { runPostgres(t, dir) })
	}
}

func runPostgres(t *testing.T, dir string) {
	t.Helper()
	server := testenv.Postgres(t)
	params := scripts(dir)
	params.Setup = func(env *testscript.Env) error {
		env.Setenv("POSTGRES", server.DSN)
		return nil
	}
	params.Cmds["postgres"] = func(ts *testscript.TestScript, neg bool, args []string) {
		switch strings.Join(args, " ") {
		case "stop":
			server.Stop(t)
		case "start":
			server.Start(t)
		default:
			ts.Fatalf("usage: postgres stop|start")
		}
	}
	testscript.Run(t, params)
}

// awaitTime bounds how long a story waits for a server.
const awaitTime = 30 * time.Second

func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: await FILE [VARIABLE]")
	}
	name := ts.MkAbs(args[0])
	deadline := time.After(awaitTime)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		data, err := os.ReadFile(name)
		if line, _, _ := bytes.Cut(data, []byte("\n")); err == nil && len(data) > 0 {
			if len(args) == 2 {
				ts.Setenv(args[1], string(line))
				ts.Setenv(args[1]+"_HOST", strings.TrimPrefix(string(line), "http://"))
			}
			return
		}
		select {
		case <-deadline:
			ts.Fatalf("%s did not come", args[0])
		case <-tick.C:
		}
	}
}

func cmdSigterm(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: sigterm")
	}
	for _, c := range ts.BackgroundCmds() {
		if filepath.Base(c.Path) == "ibid" {
			ts.Check(c.Process.Signal(syscall.SIGTERM))
		}
	}
}

func cmdCert(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: cert CERT KEY")
	}
	public, private, err := ed25519.GenerateKey(nil)
	ts.Check(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(nil, template, template, public, private)
	ts.Check(err)
	key, err := x509.MarshalPKCS8PrivateKey(private)
	ts.Check(err)
	for i, block := range []*pem.Block{{Type: "CERTIFICATE", Bytes: cert}, {Type: "PRIVATE KEY", Bytes: key}} {
		ts.Check(os.WriteFile(ts.MkAbs(args[i]), pem.EncodeToMemory(block), 0o600))
	}
}

// upstreamMain is a program: upstream [flags] ADDRESSFILE.
func upstreamMain() {
	var o replay.Options
	flags := flag.NewFlagSet("upstream", flag.ExitOnError)
	flags.DurationVar(&o.First, "first", 0, "before the first byte")
	flags.DurationVar(&o.Delay, "delay", 0, "between events")
	listen := flags.String("listen", "127.0.0.1:0", "where")
	_ = flags.Parse(os.Args[1:])
	l, err := net.Listen("tcp", *listen)
	if err == nil {
		err = file.Replace(flags.Arg(0), []byte("http://"+l.Addr().String()+"\n"), 0o644)
	}
	if err == nil {
		err = http.Serve(l, replay.New(&o))
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// headerFlag collects -H NAME:VALUE.
type headerFlag http.Header

func (h headerFlag) String() string { return "" }

func (h headerFlag) Set(s string) error {
	name, value, _ := strings.Cut(s, ":")
	http.Header(h).Add(name, strings.TrimSpace(value))
	return nil
}

// fetchMain is a program: fetch [flags] METHOD URL. It prints the body, and exits with 1 if the status is not that of
// -s, or 3 if the body is truncated.
func fetchMain() {
	header := headerFlag{}
	flags := flag.NewFlagSet("fetch", flag.ExitOnError)
	want := flags.Int("s", http.StatusOK, "the expected status")
	body := flags.String("d", "", "the body, or @ and the name of its file")
	include := flags.Bool("i", false, "also print the header")
	first := flags.String("first", "", "file to write when the body begins")
	until := flags.String("until", "", "stop when this has been received")
	again := flags.String("again", "", "repeat the request until this is in the body")
	protocol := flags.String("protocol", "", "http1, h2 or h2c; the protocol used is printed first")
	host := flags.String("host", "", "the Host header")
	flags.Var(header, "H", "a header")
	_ = flags.Parse(os.Args[1:])
	if name, ok := strings.CutPrefix(*body, "@"); ok {
		data, err := os.ReadFile(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		*body = string(data)
	}
	f := &fetcher{
		client: &http.Client{Timeout: awaitTime, Transport: transport(*protocol)}, header: http.Header(header), host: *host, body: *body,
	}
	deadline := time.Now().Add(awaitTime)
	for {
		response, err := f.do(flags.Arg(0), flags.Arg(1))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		var out bytes.Buffer
		if *protocol != "" {
			fmt.Fprintln(&out, response.Proto)
		}
		if *include {
			fmt.Fprintf(&out, "%s %s\r\n", response.Proto, response.Status)
			_ = response.Header.Write(&out)
			out.WriteString("\r\n")
		}
		err = copyBody(&out, response.Body, *first, *until)
		response.Body.Close()
		if *again != "" && !bytes.Contains(out.Bytes(), []byte(*again)) && time.Now().Before(deadline) {
			<-time.After(20 * time.Millisecond)
			continue
		}
		_, _ = out.WriteTo(os.Stdout)
		switch {
		case err != nil:
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		case response.StatusCode != *want:
			fmt.Fprintln(os.Stderr, response.Status)
			os.Exit(1)
		}
		return
	}
}

// fetcher makes requests.
type fetcher struct {
	client     *http.Client
	header     http.Header
	host, body string
}

func (f *fetcher) do(method, url string) (*http.Response, error) {
	r, err := http.NewRequest(method, url, strings.NewReader(f.body))
	if err != nil {
		return nil, err
	}
	r.Header, r.Host = f.header, f.host
	return f.client.Do(r)
}

// transport speaks one protocol, without verifying certificates.
func transport(protocol string) *http.Transport {
	t := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Protocols: new(http.Protocols)}
	t.Protocols.SetHTTP1(protocol == "" || protocol == "http1")
	t.Protocols.SetHTTP2(protocol == "h2")
	t.Protocols.SetUnencryptedHTTP2(protocol == "h2c")
	return t
}

// copyBody reads a body until it has seen until, and writes the file first when it begins.
func copyBody(out *bytes.Buffer, body io.Reader, first, until string) error {
	buffer := make([]byte, 4096)
	for {
		n, err := body.Read(buffer)
		out.Write(buffer[:n])
		if n > 0 && first != "" {
			if err := file.Replace(first, []byte("begun\n"), 0o644); err != nil {
				return err
			}
			first = ""
		}
		if until != "" && bytes.Contains(out.Bytes(), []byte(until)) || err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
