package verify_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/httpsig"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/verify"
)

// altered returns the report on an answer whose source now has another digit.
func altered(t *testing.T) (*world, *verify.Report) {
	t.Helper()
	w := published(t)
	w.page("/source", "text/html; charset=utf-8", strings.Replace(page, "1874", "1875", 1))
	r := w.report(w.verifier())
	wants(t, r, verify.Invalid, verify.ExcerptAltered)
	return w, r
}

func TestIncidents(t *testing.T) {
	w, r := altered(t)
	list := verify.Incidents(r)
	if len(list) != 1 {
		t.Fatalf("%d incidents, want the excerpt's:\n%s", len(list), text(r))
	}
	in := list[0]
	if in.Status != verify.ExcerptAltered || in.SourceURL != w.origin+"/source" || in.ManifestSHA256 != r.Manifests[0].SHA256 ||
		in.Expected.Hash == in.Observed.Hash || in.Observed.Edits != 1 || !strings.Contains(in.Observed.Nearest, "1875") || in.BundleSHA256 == "" {
		t.Errorf("the incident is %+v", in)
	}
	other := in
	other.Status = verify.ExcerptMissing
	if in.Key() == other.Key() || in.Key() != verify.Incidents(r)[0].Key() {
		t.Error("the keys do not distinguish incidents")
	}
}

func TestIncidentChain(t *testing.T) {
	_, r := altered(t)
	list := verify.Incidents(r)
	list = append(list, list[0], list[0])
	list[0].Detail = "separators \u2028 and \\u2028 <&>"
	prev := ""
	for i := range list {
		if err := list[i].Chain(prev); err != nil {
			t.Fatal(err)
		}
		prev = list[i].ID
	}
	b, err := json.Marshal(list) // as it is stored
	if err != nil {
		t.Fatal(err)
	}
	read := func() (list []verify.Incident) {
		if err := json.Unmarshal(b, &list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	if err := verify.CheckChain(read()); err != nil {
		t.Errorf("a good chain: %v", err)
	}
	if err := verify.CheckChain(read()[1:]); err != nil {
		t.Errorf("the later part of a good chain: %v", err)
	}
	for name, change := range map[string]func([]verify.Incident) []verify.Incident{
		"content":  func(l []verify.Incident) []verify.Incident { l[1].Status = verify.Verified; return l },
		"id":       func(l []verify.Incident) []verify.Incident { l[1].ID = l[0].ID; return l },
		"left out": func(l []verify.Incident) []verify.Incident { return append(l[:1], l[2:]...) },
		"order":    func(l []verify.Incident) []verify.Incident { l[0], l[1] = l[1], l[0]; return l },
	} {
		if verify.CheckChain(change(read())) == nil {
			t.Errorf("%s changed, but the chain is accepted", name)
		}
	}

	// The id is as specified: the hash of the record in canonical form, without its id.
	var members map[string]any
	one, _ := json.Marshal(list[1])
	if err := json.Unmarshal(one, &members); err != nil {
		t.Fatal(err)
	}
	delete(members, "incident_id")
	var canonical bytes.Buffer
	e := json.NewEncoder(&canonical)
	e.SetEscapeHTML(false)
	if err := e.Encode(members); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(bytes.TrimSpace(canonical.Bytes()))
	if want := "sha256:" + hex.EncodeToString(sum[:]); list[1].ID != want {
		t.Errorf("the id is %s, want %s", list[1].ID, want)
	}
}

// An incident is sent, signed, to its publisher's endpoint and nowhere else.
func TestPoster(t *testing.T) {
	w, r := altered(t)
	in := verify.Incidents(r)[0]
	if err := in.Chain(""); err != nil {
		t.Fatal(err)
	}
	var got verify.Incident
	status := http.StatusAccepted
	w.handle("/incidents", func(rw http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		m := &httpsig.Message{Method: req.Method, TargetURI: w.origin + req.RequestURI, Header: req.Header}
		all, err := httpsig.Parse(m)
		if err != nil || len(all) != 1 || all[0].Tag != "agent-citation-incident" {
			t.Errorf("signatures: %v, %v", all, err)
			return
		}
		for _, k := range w.ring.List() {
			if k.ID == all[0].KeyID {
				err = all[0].Verify(m, k.Public)
			}
		}
		if err := errors.Join(err, httpsig.CheckDigest(req.Header.Values("Content-Digest"), body), json.Unmarshal(body, &got)); err != nil {
			t.Error(err)
		}
		rw.Header().Set("Location", w.origin+"/source")
		rw.WriteHeader(status)
	})
	p := &verify.Poster{Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, Ring: w.ring, Agent: "https://verifier.example", Now: w.clock}
	if err := p.Post(t.Context(), r.Manifests[0].Incidents, &in); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, got); diff != "" {
		t.Errorf("another incident arrived: %s", diff)
	}
	hits := w.asked("/source")
	status = http.StatusTemporaryRedirect
	if p.Post(t.Context(), r.Manifests[0].Incidents, &in) == nil || w.asked("/source") != hits {
		t.Error("a redirect was followed, or was no error")
	}
	for _, endpoint := range []string{"https://other.example/", "http://127.0.0.1:1/", "", "file:///etc/passwd"} {
		if err := p.Post(t.Context(), endpoint, &in); !errors.Is(err, verify.ErrEndpoint) {
			t.Errorf("%q: %v, want ErrEndpoint", endpoint, err)
		}
	}
	p.Ring = keyring.Memory(nil)
	if err := p.Post(t.Context(), r.Manifests[0].Incidents, &in); !errors.Is(err, keyring.ErrNoKey) {
		t.Errorf("without a key: %v, want ErrNoKey", err)
	}
}

// Verifier.Poster has a client that reaches what the verifier's fetcher reaches: not this machine, unless that is
// allowed.
func TestVerifierPoster(t *testing.T) {
	w, r := altered(t)
	in := verify.Incidents(r)[0]
	reached := 0
	w.handle("/incidents", func(http.ResponseWriter, *http.Request) { reached++ })
	if err := w.verifier().Poster(w.ring, "").Post(t.Context(), r.Manifests[0].Incidents, &in); err != nil || reached != 1 {
		t.Errorf("to an allowed address: %v, %d", err, reached)
	}
	var v verify.Verifier
	defer v.Close()
	err := v.Poster(w.ring, "").Post(t.Context(), r.Manifests[0].Incidents, &in)
	if ferr, ok := errors.AsType[*snapshot.FetchError](err); !ok || ferr.Kind != snapshot.Blocked || reached != 1 {
		t.Errorf("to this machine: %v, want it blocked; %d arrived", err, reached-1)
	}
}

// The text itself is tested by verify.txtar.
func TestReportUnwritten(t *testing.T) {
	r := &verify.Report{Input: "x.json", Error: "it cannot be read"}
	if err := errors.Join(r.WriteText(broken{}, false), verify.WriteJUnit(broken{}, "", r)); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("reports that could not be written: %v, want two errors", err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// The JSON of a report has no null in place of a list, and survives a round trip.
func TestReportJSON(t *testing.T) {
	_, r := altered(t)
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(b, &members); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"version", "state", "success", "info", "failure", "level", "manifests", "claims", "sources", "upstream"} {
		if members[name] == nil {
			t.Errorf("%s is null or missing", name)
		}
	}
	var back verify.Report
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(&back)
	if err != nil || !bytes.Equal(b, again) {
		t.Errorf("a round trip changes the report (%v)", err)
	}
}
