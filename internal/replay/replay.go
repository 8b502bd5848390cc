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
	// maxRequest is how many bytes of a request are read; one that is longer is answered with 413.
	maxRequest = 64 << 20
	maxKept    = 1000 // responses that can be fetched again
)

// Options say how the upstream speaks. The zero value answers at once, a few words at a time.
type Options struct {
	First     time.Duration // before the first byte of a response
	Delay     time.Duration // between two events of a stream
	Search    time.Duration // more behind the event that says what is searched for, where that comes before the text
	ChunkSize int           // characters of text in one event; 0: 12
	Split     int           // bytes that are written and flushed at a time; 0: whole events, whole bodies
	Gzip      bool          // compress every response, whatever the request accepts
	PaddingTo int           // fills each answer's text with repetitions up to so many characters; 0: as it is
	// Copies is the address, with a slash at its end, below which the pages that answers cite are, by host and path.
	// Empty: they are cited where they would be, where nothing is.
	Copies string
	// Otherwise is the text of what answers a prompt that no answer is for. Empty: any of the answers does.
	Otherwise string
}

// New returns the upstream. It may serve any number of requests at the same time.
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
		s.otherwise = &Answer{Text: o.Otherwise}
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
	// otherwise answers a prompt that no answer is for; nil: any of the answers does
	otherwise *Answer
	formats   map[string]*format

	mu    sync.Mutex
	kept  map[string]*reply // by id
	order []string          // of kept, oldest first
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
	asked, err := readRequest(&route, body)
	if err != nil {
		s.fail(w, r, f, http.StatusBadRequest)
		return
	}
	asked.array = route.Format == "gemini-generate" && route.Stream && r.URL.Query().Get("alt") != "sse"
	if asked.failure != 0 {
		s.fail(w, r, f, asked.failure)
		return
	}
	answer := s.reply(asked)
	s.rememberReply(answer)
	s.write(w, r, f, answer)
}

// reply makes the answer of a request.
func (s *server) reply(asked *request) *reply {
	otherwise := s.otherwise
	if asked.afterTool || asked.tool != "" || asked.breakOff || asked.errorInside || len(asked.found) > 0 {
		otherwise = nil // what is wished for is shown by an answer that has sources
	}
	answer := choose(s.answers, asked.prompt, otherwise)
	if asked.unsourced {
		answer = &Answer{Text: answer.Text}
	}
	answer = answer.at(asked.found)
	return &reply{
		ID: newID(), Model: asked.model, Created: time.Now().Unix(), Tool: asked.tool,
		Answer: answer.pad(s.options.PaddingTo),
		asked:  asked, chunk: s.options.ChunkSize, seq: new(int),
	}
}

// again answers with a response that was given before.
func (s *server) again(w http.ResponseWriter, r *http.Request, f *format, id string) {
	s.mu.Lock()
	answer := s.kept[id[strings.LastIndexByte(id, '_')+1:]]
	s.mu.Unlock()
	if answer == nil {
		s.fail(w, r, f, http.StatusNotFound)
		return
	}
	asked := *answer.asked
	asked.stream, asked.breakOff, asked.errorInside = r.URL.Query().Get("stream") == "true", false, false
	copied := *answer
	copied.asked, copied.seq = &asked, new(int)
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

// newID returns what makes an id of its own of every response.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
