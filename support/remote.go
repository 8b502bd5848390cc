package support

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid/internal/scan"
	"github.com/ibidhq/ibid/internal/wire"
)

// What [Judge] and [Grounding] take of a server, unless they are told another number.
const (
	RemoteTimeout     = time.Minute // for one request
	RemoteRetries     = 2           // after a request that a server was too busy for
	RemoteConcurrency = 4           // requests at a time
	MaxRemoteResponse = 4 << 20     // bytes of a response
	// that a server may ask for before the next try; if it asks for more, there is none
	MaxRetryWait = 30 * time.Second
)

// endpoint is one address that the operator named. It is asked whatever network it is in; it cannot send ibid
// elsewhere.
type endpoint struct {
	url            *url.URL
	keyHeader, key string
	client         *http.Client
	timeout        time.Duration
	retries        int
	firstWait      time.Duration // before the first retry, if the server does not say; doubled for each further one
}

// statusError is a response that is none.
type statusError struct {
	status int
	code   string // the server's own word for it, if it has one
	wait   time.Duration
	asks   bool // it asks to wait
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("the server answers %d %s", e.status, http.StatusText(e.status))
	if e.status >= 300 && e.status < 400 {
		return text + ": redirects are not followed"
	}
	if e.code != "" {
		text += " (" + e.code + ")"
	}
	return text
}

// refused reports whether a server may do with another form of the request.
func refused(err error) bool {
	status, ok := errors.AsType[*statusError](err)
	return ok && (status.status == http.StatusBadRequest || status.status == http.StatusUnprocessableEntity)
}

// post sends a body and returns the response's. Errors name neither the key nor the path nor anything that was sent.
func (e *endpoint) post(ctx context.Context, body []byte) ([]byte, error) {
	wait := e.firstWait
	for try := 0; ; try++ {
		answer, err := e.once(ctx, body)
		if err == nil {
			return answer, nil
		}
		pause, again := retryAfter(err, wait)
		if !again || try >= e.retries || ctx.Err() != nil || pause > MaxRetryWait {
			return nil, err
		}
		if end, ok := ctx.Deadline(); ok && time.Until(end) < pause {
			return nil, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		}
		wait *= 2
	}
}

// retryAfter says how long to wait after err, and whether another try makes sense.
func retryAfter(err error, wait time.Duration) (time.Duration, bool) {
	status, ok := errors.AsType[*statusError](err)
	if !ok {
		return wait, !errors.Is(err, errTooLong)
	}
	switch status.status {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		529: // overloaded, as some providers say
		if status.asks {
			return status.wait, true
		}
		return wait, true
	}
	return 0, false
}

var errTooLong = fmt.Errorf("the response is longer than %d bytes", MaxRemoteResponse)

// once is one try.
func (e *endpoint) once(ctx context.Context, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the address is no URL") // err has it whole, and it may hold a key
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	if e.key != "" {
		r.Header.Set(e.keyHeader, e.key)
	}
	client := http.Client{}
	if e.client != nil {
		client = *e.client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(r)
	if err != nil {
		return nil, bareURL(err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	answer, err := io.ReadAll(io.LimitReader(response.Body, MaxRemoteResponse+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the response: %w", bareURL(err))
	case response.StatusCode < 200 || response.StatusCode > 299:
		return nil, e.failure(response, answer)
	case len(answer) > MaxRemoteResponse:
		return nil, errTooLong
	}
	return answer, nil
}

// failure reads a response that is no answer. Of its words only the code is kept: messages repeat keys and prompts.
func (e *endpoint) failure(response *http.Response, body []byte) error {
	s := &statusError{status: response.StatusCode}
	if code, _, ok := wire.ReadError(
		scan.Value(bytes.TrimSpace(body)),
	); ok && code != "error" && isCode(code) &&
		(e.key == "" || !strings.Contains(code, strings.TrimPrefix(e.key, "Bearer "))) {
		s.code = code
	}
	after := response.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(after); err == nil && seconds >= 0 {
		s.wait, s.asks = time.Duration(min(seconds, 1<<20))*time.Second, true
	} else if at, err := http.ParseTime(after); err == nil {
		s.wait, s.asks = max(0, time.Until(at)), true
	}
	return s
}

// isCode reports whether s is a word that a program would use for an error.
func isCode(s string) bool {
	other := strings.TrimLeft(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789_-.")
	return len(s) <= 48 && other == ""
}

// bareURL takes the address out of an error.
func bareURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// remote makes an endpoint of settings whose zero means the default.
func remote(address string, client *http.Client, timeout time.Duration, retries int) (*endpoint, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the address is no http or https URL")
	}
	if retries == 0 {
		retries = RemoteRetries
	}
	return &endpoint{
		url:       u,
		client:    client,
		timeout:   cmp.Or(timeout, RemoteTimeout),
		retries:   max(0, retries),
		firstWait: time.Second / 2,
	}, nil
}
