package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// crash repeatedly kills a serving ibid under load, and looks up every answer whose end a client saw.
func crash(ctx context.Context, args []string, out io.Writer) error {
	set := flags("crash")
	times := set.Int("times", 20, "how often it is killed")
	clients := set.Int("clients", 8, "at once")
	if err := set.Parse(args); err != nil {
		return err
	}
	d, err := newDaemon(ctx)
	if err != nil {
		return err
	}
	defer d.remove()
	var seen []string
	for round := range *times {
		ids, err := d.crashOnce(ctx, *clients)
		if err != nil {
			return err
		}
		seen = append(seen, ids...)
		fmt.Fprintf(os.Stderr, "crash %d of %d: %d answers so far\n", round+1, *times, len(seen))
	}
	proxy, err := d.serve(ctx)
	if err != nil {
		return err
	}
	defer proxy.stop()
	missing, err := missingAnswers(ctx, proxy.addr, seen)
	if err != nil {
		return err
	}
	fmt.Fprintf(
		out,
		"\n### kill -9 under load\n\n"+
			"%d kills, %d clients, strict capture: %d answers whose end a client saw, %d missing after.\n",
		*times,
		*clients,
		len(seen),
		missing,
	)
	return nil
}

// daemon is a real ibid, with the mock upstream behind it.
type daemon struct {
	*stage

	program string
	args    []string // additional flags of ibid serve
}

func newDaemon(ctx context.Context) (*daemon, error) {
	s, err := newStage(ctx)
	if err != nil {
		return nil, err
	}
	d := &daemon{stage: s}
	if d.program, err = buildIbid(ctx, s.dir); err != nil {
		d.remove()
		return nil, err
	}
	return d, nil
}

// buildIbid builds ibid into a directory, in its own module, which has more dependencies than this one.
func buildIbid(ctx context.Context, dir string) (program string, err error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/ibidhq/ibid").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	program = filepath.Join(dir, "ibid")
	//nolint:gosec // our own program
	build := exec.CommandContext(ctx, "go", "-C", strings.TrimSpace(string(root)), "build", "-o", program, "./cmd/ibid")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build ibid: %w: %s", err, said)
	}
	return program, nil
}

// serve starts ibid on the data left by the last one.
func (d *daemon) serve(ctx context.Context) (*process, error) {
	return d.serveIn(ctx, "data", d.up.addr)
}

// serveIn starts ibid on the data left in a directory, with an upstream.
func (d *daemon) serveIn(ctx context.Context, data, upstream string) (*process, error) {
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	argv := append([]string{
		d.program, "serve", "--listen", addr, "--data", filepath.Join(d.dir, data),
		"--upstream", "mock=http://" + upstream + ",provider=openai",
	}, d.args...)
	proxy, err := start(ctx, -1, "ibid serve", argv)
	if err != nil {
		return nil, err
	}
	return proxy, proxy.listening(ctx, addr)
}

// crashOnce serves clients for a while, kills the gateway and returns the ids of the answers whose end the clients saw.
func (d *daemon) crashOnce(ctx context.Context, clients int) ([]string, error) {
	proxy, err := d.serve(ctx)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var group sync.WaitGroup
	lists := make([][]string, clients)
	for i := range lists {
		group.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			for n := 0; ctx.Err() == nil; n++ {
				if id, err := completed(ctx, client, proxy.addr, (i+n)%2 == 0); err == nil {
					lists[i] = append(lists[i], id)
				}
			}
			client.CloseIdleConnections()
		})
	}
	time.Sleep(time.Second + rand.N(time.Second)) //nolint:gosec // timing needs no secrecy
	proxy.kill()
	stop()
	group.Wait()
	var ids []string
	for _, list := range lists {
		ids = append(ids, list...)
	}
	return ids, nil
}

var errNoEnd = errors.New("the end was not seen")

// completed makes a call and returns the answer's id if its end was seen, whatever happened to the connection
// afterwards.
func completed(ctx context.Context, client *http.Client, addr string, stream bool) (string, error) {
	const path = "/v1/chat/completions?chunks=5&delay=1ms&size=400&body=2000&citations=3"
	response, err := postQuestion(ctx, client, addr, path, stream)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		return "", errors.New(response.Status)
	}
	if stream && bytes.Contains(body, []byte("data: [DONE]")) || !stream && json.Valid(body) {
		return response.Header.Get("Ibid-Answer"), nil
	}
	return "", errors.Join(errNoEnd, err)
}

// missingAnswers counts the ids that the gateway does not have, or has only as incomplete.
func missingAnswers(ctx context.Context, addr string, ids []string) (int, error) {
	missing := 0
	for _, id := range ids {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/v1/answers/"+id, http.NoBody)
		if err != nil {
			return 0, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		var document struct {
			Complete  bool  `json:"complete"`
			Citations []any `json:"citations"`
		}
		err = json.NewDecoder(response.Body).Decode(&document)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || !document.Complete || len(document.Citations) != 3 {
			missing++
		}
	}
	return missing, nil
}
