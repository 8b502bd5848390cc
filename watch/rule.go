package watch

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/store"
)

const (
	// DefaultMessages is how many messages before the newest one go into a second call, unless a rule says otherwise.
	DefaultMessages = 3
	// AllMessages is the value of Rule.Messages with which all of them do.
	AllMessages = -1
	// DefaultTimeout is how long a second call may take, unless a rule says otherwise.
	DefaultTimeout = 3 * time.Second
)

// Rule says how the streams of an upstream are asked for again.
type Rule struct {
	Upstream string // whose streams
	Route    string // of which routes: a pattern of path.Match for store.Call.Route, "POST /v1beta/models/*"; empty: of all

	Provider string            // whom to ask
	URL      *url.URL          // where; nil: the upstream itself if it is that provider, else the provider's usual URL
	Model    string            // empty: the model of the first call, where the provider is the same
	Tools    []json.RawMessage // what the second call may use to find sources, in the provider's own words
	Messages int               // how many messages before the newest it has; 0: DefaultMessages
	Timeout  time.Duration     // 0: DefaultTimeout

	// Key returns the key for calls that do not go to the upstream itself; those have the caller's. Nil: there is none,
	// and then such a rule is an error.
	Key func() string
}

// target is a rule that was checked against what is known of its provider.
type target struct {
	Rule

	provider call.Provider
	url      *url.URL // nil: the upstream's
}

// ready checks a rule and fills in its defaults.
func ready(r Rule) (*target, error) {
	t := &target{Rule: r, url: r.URL}
	var known bool
	t.provider, known = call.FindProvider(r.Provider)
	switch {
	case r.Upstream == "":
		return nil, errors.New("it names no upstream")
	case !known:
		return nil, fmt.Errorf("there is no provider %q", r.Provider)
	case r.Messages < AllMessages:
		return nil, fmt.Errorf("%d messages: give a number, or %d for all", r.Messages, AllMessages)
	case r.Timeout < 0:
		return nil, fmt.Errorf("a timeout of %s", r.Timeout)
	}
	if _, err := path.Match(r.Route, ""); err != nil {
		return nil, errors.New("the route is no pattern")
	}
	for i, tool := range r.Tools {
		if !json.Valid(tool) {
			return nil, fmt.Errorf("tool %d is not JSON", i)
		}
	}
	if t.Messages == 0 {
		t.Messages = DefaultMessages
	}
	if t.Timeout == 0 {
		t.Timeout = DefaultTimeout
	}
	return t, nil
}

// place returns where the second call for a job goes, and the headers with its key. The caller's key goes nowhere but
// where the caller sent it.
func (t *target) place(j *Job) (*url.URL, http.Header, error) {
	same := j.URL != nil && j.Provider == t.Provider && (t.url == nil || *t.url == *j.URL)
	if same {
		if len(j.Keys) == 0 {
			return nil, nil, errors.New("the caller sent no key")
		}
		return j.URL, j.Keys, nil
	}
	to := t.url
	if to == nil {
		u, err := url.Parse(t.provider.URL)
		if err != nil || u.Host == "" {
			return nil, nil, errors.New("the provider has no usual URL: the rule needs one")
		}
		to = u
	}
	key := ""
	if t.Key != nil {
		key = t.Key()
	}
	if key == "" {
		return nil, nil, errors.New("there is no key for the provider")
	}
	return to, http.Header{http.CanonicalHeaderKey(t.provider.KeyHeader): {t.provider.KeyPrefix + key}}, nil
}

// Keys returns the headers of a request that hold its caller's key, for [Job.Keys]. A key in the query of a provider
// that allows it is put where the provider wants it in a header.
func Keys(r *http.Request, provider string) http.Header {
	keys := http.Header{}
	for _, name := range call.KeyHeaders() {
		if values := r.Header.Values(name); len(values) > 0 {
			keys[http.CanonicalHeaderKey(name)] = append([]string(nil), values...)
		}
	}
	p, known := call.FindProvider(provider)
	if !known || p.KeyQuery == "" {
		return keys
	}
	if key := r.URL.Query().Get(p.KeyQuery); key != "" {
		keys.Set(p.KeyHeader, p.KeyPrefix+key)
	}
	return keys
}

// fits reports whether an answer lacks what a second call can find: it is whole, it has text and no citation, and the
// model does not wait for a tool.
func fits(c *store.Call) bool {
	a := c.Answer
	return a != nil && a.Complete && a.Error == nil && a.Text != "" && len(a.Citations) == 0 &&
		a.Finish != ibid.FinishTool
}
