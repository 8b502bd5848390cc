package verify

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ibidhq/ibid/internal/httpsig"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/snapshot"
)

// Incident is the record of one failure, or of one claim that differs from its excerpt or that a judge denies: there is
// one for each manifest, claim, source and status.
type Incident struct {
	ID              string           `json:"incident_id"` // sha256:… of the canonical JSON of all other members
	ObservedAt      time.Time        `json:"observed_at"`
	Verifier        string           `json:"verifier"`
	VerifierVersion string           `json:"verifier_version"`
	ResponseURL     string           `json:"response_url"`
	ManifestURL     string           `json:"manifest_url"`
	ManifestSHA256  string           `json:"manifest_sha256"` // hexadecimal
	ClaimID         string           `json:"claim_id"`        // empty if it is about the manifest or the response
	SourceURL       string           `json:"source_url"`
	Status          Status           `json:"status"`
	Detail          string           `json:"detail"`
	Expected        Expected         `json:"expected"`
	Observed        IncidentObserved `json:"observed"`
	BundleSHA256    string           `json:"bundle_sha256"` // of the bundle's JSON, hexadecimal; empty if there is none
	Prev            string           `json:"prev"`          // ID of the previous record; empty for the first
}

// IncidentObserved is what was found instead of what was expected. Members are empty if unknown.
type IncidentObserved struct {
	HTTPStatus int       `json:"http_status"`
	FinalURL   string    `json:"final_url"`
	Hash       string    `json:"hash"`
	TextHash   string    `json:"text_hash"`
	FetchedAt  time.Time `json:"fetched_at,omitzero"`
	Nearest    string    `json:"nearest_excerpt"`
	Edits      int       `json:"edits"`
}

// Incidents returns the failures of a report and its upstream reports, and the claims that differ or are denied,
// unchained: one record for each manifest digest, claim, source and status, in the report's order.
func Incidents(r *Report) []Incident {
	manifests := map[string]*ManifestReport{} // by URL, the first
	for i := range r.Manifests {
		if m := &r.Manifests[i]; manifests[m.URL] == nil {
			manifests[m.URL] = m
		}
	}
	type place struct{ manifest, claim string }
	claims := map[place][]*ClaimReport{}
	for i := range r.Claims {
		c := &r.Claims[i]
		claims[place{c.Manifest, c.ID}] = append(claims[place{c.Manifest, c.ID}], c)
	}
	var list []Incident
	seen, bundles := map[string]bool{}, map[*ManifestReport]string{}
	denied := slices.DeleteFunc(slices.Clone(r.Info), func(f Finding) bool { return !f.Code.DeniesClaim() })
	for _, f := range slices.Concat(r.Failure, denied) {
		in := Incident{
			ObservedAt: r.CheckedAt.UTC().Round(0), Verifier: r.Verifier, VerifierVersion: r.VerifierVersion,
			ResponseURL: r.ResponseURL, ManifestURL: f.Manifest, ClaimID: f.Claim, SourceURL: f.Source,
			Status: f.Code, Detail: f.Detail,
		}
		if m := manifests[f.Manifest]; m != nil {
			if _, known := bundles[m]; !known && m.Bundle != nil {
				if b, err := json.Marshal(m.Bundle); err == nil {
					bundles[m] = hexSum(b)
				}
			}
			in.ManifestSHA256, in.BundleSHA256 = m.SHA256, bundles[m]
		}
		in.setSource(claims[place{f.Manifest, f.Claim}])
		if key := in.Key(); !seen[key] {
			seen[key] = true
			list = append(list, in)
		}
	}
	for _, up := range r.Upstream {
		list = append(list, Incidents(up)...)
	}
	return list
}

// setSource sets what was expected of the source and what was observed, as reported for the claims.
func (i *Incident) setSource(claims []*ClaimReport) {
	for _, c := range claims {
		for n := range c.Sources {
			s := &c.Sources[n]
			if s.URL != i.SourceURL || s.Result.Status != i.Status {
				continue
			}
			i.Expected = s.Expected
			i.Observed = IncidentObserved{
				HTTPStatus: s.Result.HTTPStatus, FinalURL: s.Result.FinalURL, Hash: s.Result.Hash,
				TextHash: s.Result.TextHash, FetchedAt: s.Result.CheckedAt.UTC().Round(0),
			}
			if near := s.Result.Near; near != nil {
				i.Observed.Nearest, i.Observed.Edits = near.Text, near.Edits
			}
			return
		}
	}
}

// Key identifies what the incident is about: two with the same key are one incident, seen twice.
func (i *Incident) Key() string {
	about := i.ManifestSHA256
	switch {
	case about == "":
		about = i.ManifestURL + "\x00" + i.ResponseURL
	case i.Status == OutputMismatch, i.Status == Replayed: // one incident for each wrong response
		about += "\x00" + i.ResponseURL
	}
	return hexSum([]byte(strings.Join([]string{about, i.ClaimID, i.SourceURL, string(i.Status)}, "\x00")))
}

// Chain makes i the record that follows the one with the id prev (empty if there is none): it sets Prev and ID.
func (i *Incident) Chain(prev string) error {
	i.Prev = prev
	id, err := HashRecord(i, "incident_id")
	if err == nil {
		i.ID = id
	}
	return err
}

// HashRecord returns "sha256:" and the hash of a record's canonical JSON (RFC 8785) without the member that will hold
// the hash. Records that contain the hash of the previous one form a chain.
func HashRecord(record any, member string) (string, error) {
	b, err := json.Marshal(record)
	if err != nil {
		return "", fmt.Errorf("hashing a record: %w", err)
	}
	var members map[string]json.RawMessage
	if err = json.Unmarshal(b, &members); err == nil {
		delete(members, member)
		b, err = json.Marshal(members)
	}
	if err == nil {
		err = (*jsontext.Value)(&b).Canonicalize()
	}
	if err != nil {
		return "", fmt.Errorf("hashing a record: %w", err)
	}
	return snapshot.Hash(b), nil
}

// CheckChain checks a sequence of records: the id of each must be the hash of its content, and each must name the
// previous one. The first may name a record that is not in the list. The error tells which record is wrong.
func CheckChain(list []Incident) error {
	for i := range list {
		id, err := HashRecord(&list[i], "incident_id")
		if err != nil {
			return fmt.Errorf("checking incident %d: %w", i, err)
		}
		if id != list[i].ID {
			return fmt.Errorf("checking incident %d: its content has the hash %s, its id is %q", i, id, list[i].ID)
		}
		if i > 0 && list[i].Prev != list[i-1].ID {
			return fmt.Errorf("checking incident %d: the previous one is %q, and it names %q",
				i, list[i-1].ID, list[i].Prev)
		}
	}
	return nil
}

// Poster sends signed incidents to publishers that ask for them. It is used only if the user chooses so. Create it with
// [Verifier.Poster], unless you have your own client.
type Poster struct {
	// Client sends the requests. The endpoint is chosen by a publisher, so the client must reach public networks only,
	// as that of [snapshot.Fetcher] does; redirects are not followed. If it is nil, Post fails.
	Client *http.Client
	Ring   *keyring.Ring    // its manifest key signs; if nil, Post fails
	Agent  string           // the origin that publishes Ring's keys, https://verifier.example; empty if none does
	Now    func() time.Time // nil means time.Now
}

// Poster returns a Poster that sends with the HTTP client of the verifier's Fetcher, to the networks that this may
// reach, and uses the verifier's clock. It must not be used after the Fetcher is closed.
func (v *Verifier) Poster(ring *keyring.Ring, agent string) *Poster {
	v.once.Do(v.defaults)
	return &Poster{Client: v.Fetcher.Client(), Ring: ring, Agent: agent, Now: v.Now}
}

// errEndpoint means that an incident may not be sent to the endpoint that its publisher names.
var errEndpoint = errors.New("the endpoint for incidents is not at the publisher's origin, over HTTPS")

// tagIncident is the signature tag of a sent incident, so that the signature cannot pass for that of a manifest.
const tagIncident = "agent-citation-incident"

// signatureLife is how long the signature of a sent incident is valid.
const signatureLife = 5 * time.Minute

// Post sends an incident to the endpoint that its publisher's discovery document names ([ManifestReport.Incidents]),
// which must be at the manifest's origin. Any response other than a 2xx is an error.
func (p *Poster) Post(ctx context.Context, endpoint string, i *Incident) error {
	if p.Client == nil || p.Ring == nil {
		return errors.New("sending an incident: it needs a client and a key ring")
	}
	if origin(endpoint) == "" || origin(endpoint) != origin(i.ManifestURL) || !unforgeable(endpoint) {
		return fmt.Errorf("sending an incident to %s: %w", ascii(endpoint), errEndpoint)
	}
	if err := p.post(ctx, endpoint, i); err != nil {
		return fmt.Errorf("sending an incident to %s: %w", ascii(endpoint), err)
	}
	return nil
}

// post signs method, URL, content type and digest as in RFC 9421, for a few minutes and with a nonce.
func (p *Poster) post(ctx context.Context, endpoint string, i *Incident) error {
	body, err := json.Marshal(i)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	key, signer, err := p.Ring.Signer(keyring.Manifest)
	if err != nil {
		return fmt.Errorf("signing it: %w", err)
	}
	now := time.Now()
	if p.Now != nil {
		now = p.Now()
	}
	created, expires := now.Unix(), now.Add(signatureLife).Unix()
	params := &httpsig.Params{
		Components: []httpsig.Component{
			{Name: "@method"}, {Name: "@target-uri"}, {Name: "content-type"}, {Name: "content-digest"},
		},
		Created: &created, Expires: &expires, KeyID: key.ID, Nonce: rand.Text(), Tag: tagIncident,
	}
	h := request.Header
	h.Set("Content-Type", "application/json")
	h.Set("Content-Digest", httpsig.ContentDigest(body))
	if p.Agent != "" {
		h.Set("Signature-Agent", `"`+p.Agent+`"`)
		params.Components = append(params.Components, httpsig.Component{Name: "signature-agent"})
	}
	message := &httpsig.Message{Method: request.Method, TargetURI: request.URL.String(), Header: h}
	input, signature, err := httpsig.Sign(message, "incident", params, signer)
	if err != nil {
		return fmt.Errorf("signing it: %w", err)
	}
	h.Set("Signature-Input", input)
	h.Set("Signature", signature)
	client := *p.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()                                             //nolint:errcheck // it is only read
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxDirectory)) // so that the connection can be reused
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("the response is %d", response.StatusCode)
	}
	return nil
}
