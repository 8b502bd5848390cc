package replay

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// maxRequest is the largest request in bytes; a longer one gets a 413.
	maxRequest = 64 << 20
	maxKept    = 1000 // number of responses that can be fetched again
)

// Options configure the upstream. The zero value responds at once, a few words at a time.
type Options struct {
	First     time.Duration // delay before the first byte of a response
	Delay     time.Duration // delay between two events of a stream
	Search    time.Duration // additional delay after the event with the search query, if it comes before the text
	ChunkSize int           // characters of text in one event; 0 means 12
	Split     int           // bytes written and flushed at a time; 0 means whole events and bodies
	Gzip      bool          // compress every response, regardless of the request
	PaddingTo int           // pad each answer's text with repetitions to this many characters; 0 means no padding
	// Copies is the address, with a trailing slash, under which copies of the cited pages are found, by host and path.
	// If empty, the pages are cited at their own addresses, which do not exist.
	Copies string
	// Otherwise is the text that answers a prompt without a matching answer. If empty, any answer is used.
	Otherwise string
}

// New returns the upstream. It is safe for concurrent use.
func New(o *Options) http.Handler {
	o = cmp.Or(o, &Options{})
	s := &server{options: *o, answers: mustRead(answerFiles), formats: mustParse(wireFiles), kept: map[string]*reply{}}
	for _, a := range s.answers {
		for i := range a.Sources {
			if source := &a.Sources[i]; o.Copies != "" && source.ID == "" {
				source.URL = o.Copies + strings.TrimPrefix(source.URL, "https://")
			}
		}
	}
	if o.Otherwise != "" {
		s.fallback = &Answer{Text: o.Otherwise}
	}
	if s.options.ChunkSize <= 0 {
		s.options.ChunkSize = 12
	}
	return s
}

// server is the upstream.
type server struct {
	options Options
	answers []Answer
	// fallback answers a prompt without a matching answer; nil means that any answer is used
	fallback *Answer
	formats  map[string]*format

	mu    sync.Mutex
	kept  map[string]*reply // replies by id
	order []string          // ids in kept, oldest first
}

// ServeHTTP answers one request.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route, ok := s.route(r)
	if !ok {
		http.Error(w, "replay: no provider answers "+r.Method+" "+r.URL.Path, http.StatusNotFound)
		return
	}
	f := s.formats[route.Format]
	if route.Get {
		s.again(w, r, f, route.ID)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		s.fail(w, r, f, http.StatusRequestEntityTooLarge)
		return
	}
	req, err := readRequest(&route, body)
	if err != nil {
		s.fail(w, r, f, http.StatusBadRequest)
		return
	}
	req.array = route.Format == "gemini-generate" && route.Stream && r.URL.Query().Get("alt") != "sse"
	if req.failure != 0 {
		s.fail(w, r, f, req.failure)
		return
	}
	answer := s.reply(req)
	s.rememberReply(answer)
	s.write(w, r, f, answer)
}

// reply creates the reply to a request.
func (s *server) reply(req *request) *reply {
	fallback := s.fallback
	if req.afterTool || req.tool != "" || req.breakOff || req.errorInside || len(req.found) > 0 {
		fallback = nil // the requested behaviour needs an answer with sources
	}
	answer := choose(s.answers, req.prompt, fallback)
	if req.unsourced {
		answer = &Answer{Text: answer.Text}
	}
	answer = answer.at(req.found)
	return &reply{
		ID: newID(), Model: req.model, Created: time.Now().Unix(), Tool: req.tool,
		Answer: answer.pad(s.options.PaddingTo),
		req:    req, chunk: s.options.ChunkSize, seq: new(int),
	}
}

// again sends a response that was given before.
func (s *server) again(w http.ResponseWriter, r *http.Request, f *format, id string) {
	s.mu.Lock()
	answer := s.kept[id[strings.LastIndexByte(id, '_')+1:]]
	s.mu.Unlock()
	if answer == nil {
		s.fail(w, r, f, http.StatusNotFound)
		return
	}
	req := *answer.req
	req.stream, req.breakOff, req.errorInside = r.URL.Query().Get("stream") == "true", false, false
	copied := *answer
	copied.req, copied.seq = &req, new(int)
	s.write(w, r, f, &copied)
}

func (s *server) rememberReply(answer *reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.order) == maxKept {
		delete(s.kept, s.order[0])
		s.order = s.order[1:]
	}
	s.kept[answer.ID] = answer
	s.order = append(s.order, answer.ID)
}

// newID returns an id that makes a response unique.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
