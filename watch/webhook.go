package watch

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
)

const (
	// MinWebhookSecret is how many bytes the secret of a webhook has at least.
	MinWebhookSecret = 24
	// secretPrefix begins a secret of a webhook that is written in base64.
	secretPrefix = "whsec_"
	// deliverFor is how long a delivery may take.
	deliverFor = 15 * time.Second
)

// Webhook is an endpoint that is told of alerts, by the conventions of Standard Webhooks: a POST whose body is the
// alert as JSON, with the headers webhook-id (the alert's id), webhook-timestamp and webhook-signature (v1,
// HMAC-SHA256).
type Webhook struct {
	Name   string
	URL    string
	Secret []byte            // what signs; see [ReadWebhookSecret]
	Kinds  []store.AlertKind // that it is told of; empty: all
	Tenant string            // whose alerts it is told of; empty: everybody's
}

// ReadWebhookSecret returns the bytes of a secret as it is configured: whsec_ and base64, or the text itself. It needs
// [MinWebhookSecret] bytes.
func ReadWebhookSecret(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	secret := []byte(text)
	if encoded, ok := strings.CutPrefix(text, secretPrefix); ok {
		var err error
		if secret, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return nil, errors.New("what follows " + secretPrefix + " is not base64")
		}
	}
	if len(secret) < MinWebhookSecret {
		return nil, fmt.Errorf("it has %d bytes and needs %d", len(secret), MinWebhookSecret)
	}
	return secret, nil
}

// wants reports whether a webhook is to be told of an alert.
func (h *Webhook) wants(a *store.Alert) bool {
	return (h.Tenant == "" || h.Tenant == a.Tenant) && (len(h.Kinds) == 0 || slices.Contains(h.Kinds, a.Kind))
}

// statusError is that a webhook answered with another status than 2xx.
type statusError int

func (e statusError) Error() string { return "it answered " + strconv.Itoa(int(e)) }

// isOver reports whether trying again is in vain: the endpoint says that it is gone.
func isOver(err error) bool {
	status, ok := errors.AsType[statusError](err)
	return ok && status == http.StatusGone
}

// deliveryReason says why a delivery failed without the webhook's address, which may be a secret.
func deliveryReason(err error) string {
	if f, ok := errors.AsType[*snapshot.FetchError](err); ok {
		return strings.TrimSpace(string(f.Kind) + " " + f.Reason)
	}
	if status, ok := errors.AsType[statusError](err); ok {
		return status.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "it did not answer in time"
	}
	return "the request failed"
}

// send sends an alert to a webhook. The error is a [statusError], or the client's.
func (a *Alerts) send(ctx context.Context, h *Webhook, alert *store.Alert) error {
	shown := *alert
	if a.options.Origin != "" {
		shown.Link = a.options.Origin + shown.Link
	}
	body, err := json.Marshal(&shown)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, deliverFor)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	at := strconv.FormatInt(a.now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Webhook-Id", alert.ID)
	req.Header.Set("Webhook-Timestamp", at)
	req.Header.Set("Webhook-Signature", signWebhook(h.Secret, alert.ID, at, body))
	res, err := a.options.Client.Do(req)
	if err != nil {
		return err
	}
	_ = res.Body.Close() // what it says is not looked at
	if res.StatusCode/100 != 2 {
		return statusError(res.StatusCode)
	}
	return nil
}

// signWebhook returns the signature of a message, by version 1 of Standard Webhooks.
func signWebhook(secret []byte, id, at string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
