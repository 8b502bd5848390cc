package page

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
)

const (
	// pastedFor is how long a pasted answer is kept in memory.
	pastedFor = time.Hour
	// maxPasted is how many are kept of a tenant, and maxPastedOfAll of all: the oldest give way.
	maxPasted      = 8
	maxPastedOfAll = 64
)

// pastedAnswers are answers that people pasted to look at. They are in memory, of this process alone, until their
// reader has them stored. The zero value is ready to use.
type pastedAnswers struct {
	mu  sync.Mutex
	all []pastedAnswer // the oldest first
}

type pastedAnswer struct {
	call    *store.Call
	release func() // the memory that was reserved for it
}

// add keeps an answer.
func (a *pastedAnswers) add(call *store.Call, release func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.drop(func(old *store.Call) bool { return time.Since(old.Started) > pastedFor })
	ofTenant := func(old *store.Call) bool { return old.Tenant == call.Tenant }
	a.keepLatest(maxPasted-1, ofTenant)
	a.keepLatest(maxPastedOfAll-1, func(*store.Call) bool { return true })
	a.all = append(a.all, pastedAnswer{call, release})
}

// find returns a tenant's pasted answer; nil if there is none.
func (a *pastedAnswers) find(tenant, id string) *store.Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.all {
		if one.call.Tenant == tenant && one.call.AnswerID == id && time.Since(one.call.Started) <= pastedFor {
			return one.call
		}
	}
	return nil
}

// remove forgets an answer.
func (a *pastedAnswers) remove(call *store.Call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.drop(func(old *store.Call) bool { return old == call })
}

// keepLatest drops the oldest answers of a kind, so that at most n are left.
func (a *pastedAnswers) keepLatest(n int, is func(*store.Call) bool) {
	for _, one := range a.all {
		if is(one.call) {
			n--
		}
	}
	a.drop(func(old *store.Call) bool {
		dropped := n < 0 && is(old)
		if dropped {
			n++
		}
		return dropped
	})
}

// drop forgets answers of a kind.
func (a *pastedAnswers) drop(is func(*store.Call) bool) {
	a.all = slices.DeleteFunc(a.all, func(one pastedAnswer) bool {
		dropped := is(one.call)
		if dropped {
			one.release()
		}
		return dropped
	})
}

// look reads a pasted answer and redirects to its page. It is not stored.
func (p *Page) look(w *httpx.Reply, r *httpx.Request) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	// Browsers send all line endings as CRLF.
	field := func(name string) string { return strings.ReplaceAll(r.PostForm.Get(name), "\r\n", "\n") }
	answer := field("answer")
	if strings.TrimSpace(answer) == "" {
		return httpx.BadRequest("There is nothing to look at.", "Paste an answer: any response, stream or text.")
	}
	opts := ibid.DecodeOptions{Context: r.Context()}
	addGiven(&opts, strings.TrimSpace(field("given")))
	decoded, release, err := p.o.API.Decode(r, []byte(answer), &opts)
	if err != nil {
		return err
	}
	call, err := gateway.NewGiven(r.Request, r.Who)
	if err != nil {
		release()
		return err
	}
	call.Publish = false // its reader has not asked for it
	if call.Answer = decoded; isJSON(field("given")) {
		api.AddPrompt(call, &opts)
	}
	p.pasted.add(call, release)
	http.Redirect(w, r.Request, answerURL(call.AnswerID), http.StatusSeeOther)
	return nil
}

// showLook shows the form.
func (p *Page) showLook(context.Context, *httpx.Request) (*view, error) {
	return &view{Name: "look", Title: "Look at an answer"}, nil
}

// keep stores a pasted answer.
func (p *Page) keep(w *httpx.Reply, r *httpx.Request) error {
	call := p.pasted.find(r.Who.Tenant, r.PathValue("id"))
	if call == nil {
		return errNotFound
	}
	if err := p.o.API.Keep(r.Context(), call); err != nil {
		return err
	}
	p.pasted.remove(call)
	http.Redirect(w, r.Request, answerURL(call.AnswerID), http.StatusSeeOther)
	return nil
}

// isPasted reports whether an answer was pasted and is not stored.
func (p *Page) isPasted(call *store.Call) bool {
	return call.Upstream == gateway.GivenUpstream && p.pasted.find(call.Tenant, call.AnswerID) != nil
}

func isJSON(s string) bool { return strings.HasPrefix(strings.TrimSpace(s), "{") }

// addGiven sets what the model was given: documents or a request as JSON, addresses one a line, or passages as a
// program writes them into a prompt.
func addGiven(opts *ibid.DecodeOptions, given string) {
	if given == "" {
		return
	}
	if isJSON(given) {
		opts.Request = []byte(given)
		return
	}
	if documents, err := ibid.ReadDocuments([]byte(given)); err == nil {
		opts.Documents = documents
		return
	}
	// Strings can always be written.
	if list := readAddresses(given); list != nil {
		raw, _ := json.Marshal(list)
		opts.Documents, _ = ibid.ReadDocuments(raw)
		return
	}
	opts.Request, _ = json.Marshal(map[string]any{
		"messages": []map[string]string{{"role": store.RoleUser, "content": "Sources:\n\n" + given}},
	})
}

// listed matches the number or the bullet of a line in a list of addresses.
var listed = regexp.MustCompile(`^\s*(?:[-*•]|\[?\d{1,3}[\].:)]*)?\s*(.*)$`)

// address is a document of which only the address is known.
type address struct {
	URL   string `json:"url"`
	Title string `json:"title,omitempty"`
}

// readAddresses reads addresses, one a line and perhaps numbered, each with an optional title before it. It returns nil
// if a line has none.
func readAddresses(given string) (list []address) {
	for line := range strings.Lines(given) {
		line = strings.TrimSpace(listed.FindStringSubmatch(strings.TrimSpace(line))[1])
		if line == "" {
			continue
		}
		at := strings.Index(line, "http")
		if at < 0 || strings.ContainsAny(line[at:], " \t") {
			return nil
		}
		u, err := url.Parse(strings.TrimRight(line[at:], ">)."))
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil
		}
		list = append(list, address{u.String(), strings.Trim(line[:at], " \t-–—:(<")})
	}
	return list
}
