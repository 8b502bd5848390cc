package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

const (
	bulkPages = 1000 // sources that the manifests cite
	bulkHosts = 200  // hosts that serve them: ibid reads at most ten pages a second from each
)

// bulk has ibid cite read an archive of responses, and ibid verify a list of manifests. Each command is interrupted
// halfway and resumed, and must write one line for each input, in order. A tenth of the inputs is run first, to show
// whether memory grows with their number.
func bulk(ctx context.Context, args []string, out io.Writer) error {
	set := flags("bulk")
	responses := set.Int("responses", 1_000_000, "how many ibid cite reads; 0: none")
	manifests := set.Int("manifests", 100_000, "how many ibid verify reads; 0: none")
	if err := set.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ibid-bulk-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program, err := buildIbid(ctx, dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "| %d cores | inputs | time | CPU an input | most memory |\n", runtime.NumCPU())
	fmt.Fprintln(out, "| --- | --- | --- | --- | --- |")
	for _, n := range []int{*responses / 10, *responses} {
		if n == 0 {
			continue
		}
		archive := filepath.Join(dir, fmt.Sprintf("%d.tar.gz", n))
		if err := writeResponses(archive, n); err != nil {
			return err
		}
		b := bulkRun{program: program, lines: n, input: func(i int) string { return archive + ":" + responseName(i) }}
		if err := b.run(ctx, out, "cite", "--json", archive); err != nil {
			return err
		}
	}
	return bulkManifests(ctx, out, program, dir, *manifests)
}

// responseName is the name of a response in the archive.
func responseName(i int) string { return fmt.Sprintf("%07d.json", i) }

// writeResponses writes an archive of n responses of 1.7 KB, each with four citations.
func writeResponses(name string, n int) error {
	return writeFile(name, func(w io.Writer) error {
		packed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		archive := tar.NewWriter(packed)
		var b []byte
		for i := range n {
			b = appendJSON(b[:0], int64(i), shape{body: 1000, citations: 4})
			_, body, _ := bytes.Cut(b, []byte("\r\n\r\n"))
			header := &tar.Header{Name: responseName(i), Mode: 0o600, Size: int64(len(body))}
			if err := archive.WriteHeader(header); err != nil {
				return err
			}
			if _, err := archive.Write(body); err != nil {
				return err
			}
		}
		return errors.Join(archive.Close(), packed.Close())
	})
}

// writeFile writes a file through a buffer.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	return errors.Join(write(w), w.Flush(), f.Close())
}

// bulkManifests has ibid verify read n manifests, whose pages and keys are served here.
func bulkManifests(ctx context.Context, out io.Writer, program, dir string, n int) error {
	w, err := newBulkWorld(ctx)
	if err != nil {
		return err
	}
	defer w.close()
	for _, n := range []int{n / 10, n} {
		if n == 0 {
			continue
		}
		at := filepath.Join(dir, fmt.Sprint("manifests-", n))
		list, err := w.writeManifests(ctx, at, n)
		if err != nil {
			return err
		}
		b := bulkRun{program: program, lines: n, input: func(i int) string { return bundleName(at, i) }}
		data := filepath.Join(at, "data")
		err = b.run(ctx, out, "verify", "--json", "--list", list, "--allow-net", "127.0.0.0/8", "--data", data)
		if err != nil {
			return err
		}
	}
	return nil
}

// bundleName is the name of a manifest's file.
func bundleName(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("%07d.json", i)) }

// bulkWorld serves the pages that manifests cite, each host at an address of its own, and the publisher's keys.
type bulkWorld struct {
	publisher *manifest.Publisher
	server    *http.Server
	port      string
}

func newBulkWorld(ctx context.Context) (*bulkWorld, error) {
	keys := keyring.Memory(nil)
	if _, err := keys.New(nil); err != nil {
		return nil, err
	}
	w := &bulkWorld{port: "0"}
	w.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: w}
	for i := range bulkHosts {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(bulkHost(i), w.port))
		if err != nil {
			return nil, errors.Join(err, w.server.Close())
		}
		_, w.port, _ = net.SplitHostPort(listener.Addr().String())
		go func() { _ = w.server.Serve(listener) }()
	}
	w.publisher = &manifest.Publisher{Origin: "http://" + bulkHost(0) + ":" + w.port, Level: 3, Keys: keys}
	return w, nil
}

func (w *bulkWorld) close() { _ = w.server.Close() }

func bulkHost(i int) string { return fmt.Sprintf("127.0.0.%d", i%bulkHosts+1) }

// page returns the address of a page and its HTML.
func (w *bulkWorld) page(i int) (url, text string) {
	i %= bulkPages
	url = fmt.Sprintf("http://%s:%s/pages/%d", bulkHost(i), w.port, i)
	return url, "<p>" + pageQuote(i) + ", which keepers counted twice.</p>"
}

// pageQuote returns the words of page i that manifests quote.
func pageQuote(i int) string {
	return fmt.Sprintf("In the year %d the heronry of district %d had %d nests", 1800+i%200, i, 17*i)
}

func (w *bulkWorld) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	number, found := strings.CutPrefix(r.URL.Path, "/pages/")
	i, err := strconv.Atoi(number)
	if !found || err != nil {
		w.publisher.Handler().ServeHTTP(out, r)
		return
	}
	_, text := w.page(i)
	out.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(out, text)
}

// writeManifests writes n signed manifests of two claims each and returns the name of a list of their files.
func (w *bulkWorld) writeManifests(ctx context.Context, dir string, n int) (list string, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	list = filepath.Join(dir, "list.txt")
	return list, writeFile(list, func(names io.Writer) error {
		for i := range n {
			signed, err := w.manifest(ctx, i)
			if err != nil {
				return err
			}
			b, err := json.Marshal(signed)
			if err == nil {
				err = os.WriteFile(bundleName(dir, i), b, 0o600)
			}
			if err != nil {
				return err
			}
			fmt.Fprintln(names, bundleName(dir, i))
		}
		return nil
	})
}

// manifest makes a manifest with two claims from two pages.
func (w *bulkWorld) manifest(ctx context.Context, n int) (*manifest.Signed, error) {
	a := &ibid.Answer{}
	for k := range 2 {
		i := (n + 7*k) % bulkPages
		claim := fmt.Sprintf("District %d had %d nests in %d. ", i, 17*i, 1800+i%200)
		url, _ := w.page(i)
		id := strconv.Itoa(i)
		a.Sources = append(a.Sources, ibid.Source{ID: id, Kind: ibid.Web, URL: url})
		start := len(a.Text)
		a.Text += claim
		span := ibid.Span{Start: start, End: len(a.Text) - 1}
		if err := a.Cite(span, ibid.Ref{Source: id, Quote: pageQuote(i)}); err != nil {
			return nil, err
		}
	}
	path := fmt.Sprintf("/runs/bulk-%d/cite", n)
	build := &manifest.Builder{
		Self: w.publisher.URL(path), RunID: fmt.Sprint("bulk-", n), AgentID: w.publisher.Agent(),
		Read: func(_ context.Context, url string) (*snapshot.Snapshot, error) {
			_, number, _ := strings.Cut(url, "/pages/")
			i, err := strconv.Atoi(number)
			if err != nil {
				return nil, err
			}
			_, text := w.page(i)
			return &snapshot.Snapshot{
				URL: url, FinalURL: url, Status: http.StatusOK, MediaType: "text/html; charset=utf-8",
				FetchedAt: time.Now(), Octets: []byte(text), Hash: snapshot.Hash([]byte(text)),
			}, nil
		},
	}
	m, err := build.Build(ctx, a, nil)
	if err != nil {
		return nil, err
	}
	return w.publisher.Seal(ctx, path, m)
}

// bulkRun is a command of ibid that writes one line for each of its inputs.
type bulkRun struct {
	program string
	lines   int
	input   func(i int) string // the name of an input
}

// run runs the command, interrupts it once in the middle, resumes it, and checks its output.
func (b *bulkRun) run(ctx context.Context, out io.Writer, args ...string) error {
	written := filepath.Join(filepath.Dir(b.program), fmt.Sprintf("%s-%d.jsonl", args[0], b.lines))
	begin := time.Now()
	var used time.Duration
	var most int64
	for _, breakOff := range []bool{true, false} {
		state, err := b.part(ctx, append(args, "--resume", written), written, breakOff)
		if err != nil {
			return err
		}
		used += state.UserTime() + state.SystemTime()
		if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
			most = max(most, usage.Maxrss<<10)
		}
	}
	took := time.Since(begin)
	if err := b.check(written); err != nil {
		return fmt.Errorf("ibid %s: %w", args[0], err)
	}
	fmt.Fprintf(
		out, "| ibid %s | %d | %s | %.0f µs | %d MB |\n", args[0], b.lines, took.Round(time.Second),
		float64(used.Microseconds())/float64(b.lines), most>>20,
	)
	return os.Remove(written)
}

// part runs the command until its end, or until half of its lines are written.
func (b *bulkRun) part(ctx context.Context, args []string, written string, breakOff bool) (*os.ProcessState, error) {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, b.program, args...) //nolint:gosec // our own program
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	if breakOff {
		go interruptHalfway(cmd.Process, written, b.lines, done)
	}
	err := cmd.Wait()
	close(done)
	if err != nil && !breakOff {
		return nil, fmt.Errorf("ibid %s: %w: %s", args[0], err, said.Bytes())
	}
	return cmd.ProcessState, nil
}

// interruptHalfway interrupts a process once half of its lines are written, which are all about as long as the first.
func interruptHalfway(p *os.Process, written string, lines int, done <-chan struct{}) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		f, err := os.Open(written)
		if err != nil {
			continue
		}
		first, _ := bufio.NewReader(f).ReadSlice('\n')
		info, err := f.Stat()
		_ = f.Close()
		if err == nil && len(first) > 0 && info.Size() > int64(lines)/2*int64(len(first)) {
			_ = p.Signal(os.Interrupt)
			return
		}
	}
}

// check reports missing, duplicate and out-of-order lines, and those with errors.
func (b *bulkRun) check(written string) error {
	f, err := os.Open(written)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	r := bufio.NewScanner(f)
	r.Buffer(nil, 1<<20)
	n := 0
	for ; r.Scan(); n++ {
		var line struct {
			Input string
			Error any
			State string
		}
		if err := json.Unmarshal(r.Bytes(), &line); err != nil {
			return fmt.Errorf("line %d: %w", n+1, err)
		}
		if n >= b.lines || line.Input != b.input(n) {
			return fmt.Errorf("line %d is about %s", n+1, line.Input)
		}
		if line.Error != nil || line.State == "invalid" || line.State == "unverifiable" {
			return fmt.Errorf("line %d is no result: %.500s", n+1, r.Bytes())
		}
	}
	if r.Err() == nil && n != b.lines {
		return fmt.Errorf("%d lines, want %d", n, b.lines)
	}
	return r.Err()
}
