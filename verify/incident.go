package verify

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

// Incident is the record of one thing that failed: one for each manifest, claim, source and status.
type Incident struct {
	ID              string           `json:"incident_id"` // sha256:… of the canonical JSON of all other members
	ObservedAt      time.Time        `json:"observed_at"`
	Verifier        string           `json:"verifier"`
	VerifierVersion string           `json:"verifier_version"`
	ResponseURL     string           `json:"response_url"`
	ManifestURL     string           `json:"manifest_url"`
	ManifestSHA256  string           `json:"manifest_sha256"` // hexadecimal
	ClaimID         string           `json:"claim_id"`        // empty: it is about the manifest or the response
	SourceURL       string           `json:"source_url"`
	Status          Status           `json:"status"`
	Detail          string           `json:"detail"`
	Expected        Expected         `json:"expected"`
	Observed        IncidentObserved `json:"observed"`
	BundleSHA256    string           `json:"bundle_sha256"` // of the bundle's JSON, hexadecimal; empty: there is none
	Prev            string           `json:"prev"`          // ID of the record before; empty: this is the first
}

// IncidentObserved is what was found in place of what was expected. Empty members were not found out.
type IncidentObserved struct {
	HTTPStatus int       `json:"http_status"`
	FinalURL   string    `json:"final_url"`
	Hash       string    `json:"hash"`
	TextHash   string    `json:"text_hash"`
	FetchedAt  time.Time `json:"fetched_at,omitzero"`
	Nearest    string    `json:"nearest_excerpt"`
	Edits      int       `json:"edits"`
}

// Incidents returns what failed in a report and its upstream reports, unchained: one record for each manifest digest,
// claim, source and status, in the report's order.
func Incidents(r *Report) []Incident {
	var list []Incident
	seen, x := map[string]bool{}, reported(r)
	for i := range r.Failure {
		f := &r.Failure[i]
		in := Incident{
			ObservedAt:      r.CheckedAt.UTC().Round(0),
			Verifier:        r.Verifier,
			VerifierVersion: r.VerifierVersion,
			ResponseURL:     r.ResponseURL,
			ManifestURL:     f.Manifest,
			ClaimID:         f.Claim,
			SourceURL:       f.Source,
			Status:          f.Code,
			Detail:          f.Detail,
		}
		in.fromManifest(x)
		in.fromSource(x)
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

// reportIndex is where the parts of a report are found.
type reportIndex struct {
	manifests map[string]*ManifestReport   // by URL, the first
	claims    map[[2]string][]*ClaimReport // by URL of the manifest and id
	bundles   map[*ManifestReport]string   // hashes that are known already
}

func reported(r *Report) *reportIndex {
	x := &reportIndex{map[string]*ManifestReport{}, map[[2]string][]*ClaimReport{}, map[*ManifestReport]string{}}
	for i := range r.Manifests {
		if m := &r.Manifests[i]; x.manifests[m.URL] == nil {
			x.manifests[m.URL] = m
		}
	}
	for i := range r.Claims {
		c := &r.Claims[i]
		at := [2]string{c.Manifest, c.ID}
		x.claims[at] = append(x.claims[at], c)
	}
	return x
}

func (i *Incident) fromManifest(x *reportIndex) {
	m := x.manifests[i.ManifestURL]
	if m == nil {
		return
	}
	sum, known := x.bundles[m]
	if !known {
		sum = bundleSum(m.Bundle)
		x.bundles[m] = sum
	}
	i.ManifestSHA256, i.BundleSHA256 = m.SHA256, sum
}

func (i *Incident) fromSource(x *reportIndex) {
	for _, c := range x.claims[[2]string{i.ManifestURL, i.ClaimID}] {
		for n := range c.Sources {
			s := &c.Sources[n]
			if s.URL != i.SourceURL || s.Result.Status != i.Status {
				continue
			}
			i.Expected = s.Expected
			i.Observed = IncidentObserved{
				HTTPStatus: s.Result.HTTPStatus,
				FinalURL:   s.Result.FinalURL,
				Hash:       s.Result.Hash,
				TextHash:   s.Result.TextHash,
				FetchedAt:  s.Result.CheckedAt.UTC().Round(0),
			}
			if near := s.Result.Near; near != nil {
				i.Observed.Nearest, i.Observed.Edits = near.Text, near.Edits
			}
			return
		}
	}
}

func bundleSum(s *manifest.Signed) string {
	if s == nil {
		return ""
	}
	b, err := json.Marshal(s)
	if err != nil {
		return ""
	}
	return hexSum(b)
}

// Key identifies what the incident is about: two with one key are the same incident, seen twice.
func (i *Incident) Key() string {
	about := i.ManifestSHA256
	switch {
	case about == "":
		about = i.ManifestURL + "\x00" + i.ResponseURL
	case i.Status == OutputMismatch, i.Status == Replayed: // of one manifest, with each response that it is not about
		about += "\x00" + i.ResponseURL
	}
	return hexSum([]byte(strings.Join([]string{about, i.ClaimID, i.SourceURL, string(i.Status)}, "\x00")))
}

// Chain makes i the record after the one with the id prev (empty: there is none): it fills Prev and ID.
func (i *Incident) Chain(prev string) error {
	i.Prev = prev
	id, err := i.sum()
	if err != nil {
		return err
	}
	i.ID = id
	return nil
}

// sum returns the hash of the record without its id.
func (i *Incident) sum() (string, error) {
	b, err := json.Marshal(i)
	if err != nil {
		return "", fmt.Errorf("hashing an incident: %w", err)
	}
	var members map[string]json.RawMessage
	if err = json.Unmarshal(b, &members); err == nil {
		delete(members, "incident_id")
		b, err = json.Marshal(members)
	}
	if err == nil {
		err = (*jsontext.Value)(&b).Canonicalize()
	}
	if err != nil {
		return "", fmt.Errorf("hashing an incident: %w", err)
	}
	return snapshot.Hash(b), nil
}

// CheckChain checks records in their order: each has the hash of its content for its id, and names the one before. The
// first may name one that was left out. The error says which record is wrong.
func CheckChain(list []Incident) error {
	for i := range list {
		id, err := list[i].sum()
		if err != nil {
			return fmt.Errorf("checking incident %d: %w", i, err)
		}
		if id != list[i].ID {
			return fmt.Errorf("checking incident %d: its content has the hash %s, its id is %q", i, id, list[i].ID)
		}
		if i > 0 && list[i].Prev != list[i-1].ID {
			return fmt.Errorf(
				"checking incident %d: the one before it is %q, and it names %q", i, list[i-1].ID, list[i].Prev,
			)
		}
	}
	return nil
}
