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
	"time"

	"github.com/ibidhq/ibid/internal/httpsig"
	"github.com/ibidhq/ibid/keyring"
)

// Poster sends incidents to publishers who ask for them, signed. Nobody has to be told: it is for users who choose so.
// Make it with [Verifier.Poster], unless you have a client of your own.
type Poster struct {
	// Client sends. The endpoint is named by a publisher, so the client must reach public networks only, as that of
	// [snapshot.Fetcher] does; it is never asked to follow a redirect. Nil: nothing can be sent.
	Client *http.Client
	Ring   *keyring.Ring    // its key for manifests signs; nil: nothing can be sent
	Agent  string           // the origin where Ring's keys are published, https://verifier.example; empty: nowhere
	Now    func() time.Time // nil: time.Now
}

// Poster returns a Poster that sends through the verifier's Fetcher, to where that fetches from, and has the verifier's
// clock. It ends with the Fetcher.
func (v *Verifier) Poster(ring *keyring.Ring, agent string) *Poster {
	v.once.Do(v.defaults)
	return &Poster{Client: v.Fetcher.Client(), Ring: ring, Agent: agent, Now: v.Now}
}

// ErrEndpoint says that an incident cannot be sent to where its publisher says.
var ErrEndpoint = errors.New("the endpoint for incidents is not one of the publisher's origin, by https")

// TagIncident is the tag of the signature of an incident that is sent: it cannot be passed off as that of a manifest.
const TagIncident = "agent-citation-incident"

// signatureLife is how long the signature of a sent incident is good for.
const signatureLife = 5 * time.Minute

// Post sends an incident to the endpoint that its publisher's discovery names ([ManifestReport.Incidents]), which must
// be of the manifest's origin. Anything but a 2xx is an error.
func (p *Poster) Post(ctx context.Context, endpoint string, i *Incident) error {
	if p.Client == nil || p.Ring == nil {
		return errors.New("sending an incident: there is no client or no key ring to send it with")
	}
	if origin(endpoint) == "" || origin(endpoint) != origin(i.ManifestURL) || !unforgeable(endpoint) {
		return fmt.Errorf("sending an incident to %s: %w", ascii(endpoint), ErrEndpoint)
	}
	body, err := json.Marshal(i)
	if err != nil {
		return fmt.Errorf("sending an incident: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("sending an incident: %w", err)
	}
	if err := p.sign(request, body); err != nil {
		return fmt.Errorf("signing an incident: %w", err)
	}
	client := *p.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("sending an incident: %w", err)
	}
	defer response.Body.Close()                                             //nolint:errcheck // it was only read
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, MaxDirectory)) // so that the connection can be used again
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("sending an incident to %s: the answer is %d", ascii(endpoint), response.StatusCode)
	}
	return nil
}

// sign signs a request as RFC 9421 says: method, URL, type and digest, good for a few minutes and for once.
func (p *Poster) sign(r *http.Request, body []byte) error {
	key, signer, err := p.Ring.Signer(keyring.Manifest)
	if err != nil {
		return err
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
		Created: &created,
		Expires: &expires,
		KeyID:   key.ID,
		Nonce:   rand.Text(),
		Tag:     TagIncident,
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Content-Digest", httpsig.ContentDigest(body))
	if p.Agent != "" {
		r.Header.Set("Signature-Agent", `"`+p.Agent+`"`)
		params.Components = append(params.Components, httpsig.Component{Name: "signature-agent"})
	}
	input, signature, err := httpsig.Sign(
		&httpsig.Message{Method: r.Method, TargetURI: r.URL.String(), Header: r.Header}, "incident", params, signer)
	if err != nil {
		return err
	}
	r.Header.Set("Signature-Input", input)
	r.Header.Set("Signature", signature)
	return nil
}
