package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/store"
)

const (
	// liveEvery is the interval at which changes of an answer are sent.
	liveEvery = 200 * time.Millisecond
	// liveRest is how many times as long as it took to send changes nothing is sent after them.
	liveRest = 4
	// liveQuiet is how long an answer that this node does not know may be silent until it counts as broken off. It is
	// longer than a provider usually thinks, as nothing is sent meanwhile.
	liveQuiet = 2 * time.Minute
	// liveUnknown is how long to wait for the first message: a node that relays the answer replies at once to a new
	// listener.
	liveUnknown = 10 * time.Second
	// liveStore is how long after its end an answer may take to become readable, and liveAgain the longest interval
	// between two attempts.
	liveStore = 10 * time.Second
	liveAgain = 2 * time.Second
	// liveChecking is how long an answer that has ended is shown as being checked.
	liveChecking = 15 * time.Second
	// liveLate is how long a stream stays open for citations that arrive after an answer that had none.
	liveLate = 90 * time.Second
	// liveBeat is how often something is sent, so that no proxy closes the stream as idle.
	liveBeat = 15 * time.Second
	// liveWrite is how long a client may take to accept an event.
	liveWrite = 10 * time.Second
	// maxLive is how many answers and runs a tenant can watch at the same time on one node.
	maxLive = 256
)

// liveStream streams one arriving answer to one client.
//
// Events are state ({"text":…}: what is being done), block ({"n":…,"of":…,"html":…,"dir":…}: the n-th block of the
// text, from 0, the number of blocks, and the direction of the text), sources ({"html":…}: the list of sources so far,
// from which cards are filled), answer ({"html":…,"byline":…,"state":…,"whole":…,"checking":…,"facts":…}: the complete
// article, the line above it, how the answer ended in a sentence, whether it is complete, whether its sources are being
// read for the first time, and the head of its conversation; sent once the answer has ended, and again when it gets
// citations later or its sources were read), gone ({"text":…}: there is no such answer and will be none), and end. A
// client that reconnects is sent all blocks; it leaves those untouched that it already has.
type liveStream struct {
	*httpx.Stream

	p            *Page
	r            *httpx.Request
	answerID     string
	run          string // empty if it is not known
	conversation string // empty if it is in none
	options      answerOptions
	numbering    ibid.Numbering

	arriving *arrivingAnswer   // nil if this node did not ask for it
	partial  partial           // what was received of it
	seen     liveState         // how much of it was sent
	shown    int               // bytes of its text that were sent
	blocks   []string          // as they were sent
	state    string            // the last state that was sent
	article  []byte            // the complete answer, as it was sent
	head     *conversationBody // head of its conversation; nil if it has none yet
	heard    time.Time
	known    bool          // something was received
	ended    time.Time     // when the answer ended; zero if it has not
	again    time.Time     // when to look for it again after that
	pause    time.Duration // between the last two attempts
	rested   time.Time     // no blocks are sent before
	whole    bool          // the complete answer was sent
	checking bool          // it was sent as being checked
}

// liveState is the size of an answer.
type liveState struct{ text, sources, citations, queries int }

// liveAnswer streams an answer to a client while it arrives.
func (p *Page) liveAnswer(w *httpx.Reply, r *httpx.Request) error {
	id, err := r.PathID()
	if err != nil {
		return err
	}
	s := &liveStream{p: p, r: r, answerID: id, heard: time.Now()}
	if err := s.prepare(); err != nil {
		return err
	}
	release, ok := p.bounds.watching.Take(r.Who.Tenant)
	if !ok {
		return tooManyWatch("Reload the page when the answer is there.")
	}
	defer release()
	var listener *bus.Listener
	if p.o.Bus != nil && s.run != "" {
		if listener, err = p.o.Bus.Listen(r.Context(), r.Who.Tenant, s.run); err != nil {
			return gateway.Unavailable("The answer cannot be watched at the moment.")
		}
		defer listener.Close()
	}
	p.stream(w, r, func(ctx context.Context, to *httpx.Stream) error {
		s.Stream = to
		err := s.follow(ctx, listener)
		if errors.Is(err, httpx.ErrWorkTime) {
			p.log.LogAttrs(ctx, slog.LevelError, "an answer was not shown",
				slog.String("answer_id", s.answerID), slog.Any("error", err))
			return s.giveUp("The answer takes too long to be shown here.")
		}
		return err
	})
	return nil
}

// errLiveEnd ends a stream that has sent everything.
var errLiveEnd = errors.New("the stream ends")

// prepare finds out what is known of the answer, and how its page numbers sources.
func (s *liveStream) prepare() error {
	q := s.r.URL.Query()
	s.run, s.conversation = asked(s.r, "run"), asked(s.r, "conversation")
	if s.arriving = s.p.arriving.find(s.r.Who.Tenant, s.answerID); s.arriving != nil {
		s.run, s.conversation = s.arriving.run, s.arriving.conversation
	}
	ctx, cancel := context.WithTimeout(s.r.Context(), askStore)
	defer cancel()
	switch call, err := s.p.call(ctx, s.r.Who.Tenant, s.answerID); {
	case err == nil:
		s.run, s.conversation = call.Run, call.Conversation
	case !errors.Is(err, store.ErrNotFound):
		return err
	case s.arriving == nil && s.run == "":
		return err
	}
	s.options = answerOptions{
		prefix: idPrefix(q.Get("prefix")), live: true, readOnly: !mayWrite(s.r), strip: q.Get("conversation") != "",
	}
	var err error
	s.numbering, s.head, err = s.number(ctx)
	return err
}

// number reads the numbering of the conversation's sources, and its head; both are empty if there is no conversation
// yet.
func (s *liveStream) number(ctx context.Context) (ibid.Numbering, *conversationBody, error) {
	if s.conversation == "" {
		return ibid.Numbering{}, nil, nil
	}
	c, err := s.p.o.Store.Conversation(ctx, s.r.Who.Tenant, s.conversation, &store.Query{Limit: 1})
	if errors.Is(err, store.ErrNotFound) {
		return ibid.Numbering{}, nil, nil
	}
	if err != nil {
		return ibid.Numbering{}, nil, err
	}
	return c.Numbering, &conversationBody{Conversation: c}, nil
}

// follow sends changes until the answer is complete, the client leaves or the server shuts down.
func (s *liveStream) follow(ctx context.Context, listener *bus.Listener) error {
	if err := s.Comment("watching\nretry: 2000"); err != nil {
		return err
	}
	var heard <-chan bus.Message
	if listener != nil {
		heard = listener.C
	}
	var done <-chan struct{}
	if s.arriving != nil {
		done = s.arriving.turn.Done()
	}
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	beat := time.NewTicker(liveBeat)
	defer beat.Stop()
	if err := s.poll(ctx); err != nil { // it may have ended before the listener was there
		return err
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m, open := <-heard:
			if !open { // it fell behind, and will reconnect
				return errLiveEnd
			}
			err = s.receive(ctx, &m)
		case <-done:
			done, s.ended = nil, time.Now()
			err = s.poll(ctx)
		case <-tick.C:
			err = s.tick(ctx)
		case <-beat.C:
			if !s.p.o.Guard.Still(ctx, s.r.Who) {
				return errLiveEnd
			}
			err = s.Comment("heartbeat")
		}
		if err != nil {
			return err
		}
	}
}

// answerEvents are the kinds of events that change a stored answer.
var answerEvents = []string{store.EventAnswer, store.EventBackfill, store.EventVerification, store.EventManifest}

// receive processes a message of the bus.
func (s *liveStream) receive(ctx context.Context, m *bus.Message) error {
	switch {
	case m.Live != nil && m.Live.AnswerID == s.answerID:
		s.heard, s.known = time.Now(), true
		s.partial.take(m.Live)
	case m.Event != nil && slices.Contains(answerEvents, m.Event.Kind):
		var of struct {
			AnswerID string `json:"answer_id"`
		}
		if json.Unmarshal(m.Event.Data, &of) == nil && of.AnswerID == s.answerID {
			s.whole, s.ended = false, time.Now()
			return s.poll(ctx)
		}
	case m.Wake:
		s.whole = false
		return s.poll(ctx)
	}
	return nil
}

// wholeAnswer is a complete answer as it is sent to all who watch it on the same page.
type wholeAnswer struct {
	call      *store.Call
	numbering ibid.Numbering
	head      *conversationBody
	html      []byte
	byline    []byte // shown above it
	state     string
	checking  bool // its sources are being read for the first time
	signed    bool // it is published
}

// poll sends the complete answer if it is readable. Hundreds may watch it end: concurrent calls share one read.
func (s *liveStream) poll(ctx context.Context) error {
	key := strings.Join(
		[]string{
			s.r.Who.Tenant, s.answerID, s.conversation, s.options.prefix, strconv.FormatBool(s.options.readOnly),
			strconv.FormatBool(s.r.Who.May(store.ScopeVerify)),
		}, "\x00",
	)
	whole, err := httpx.Shared(ctx, &s.p.arriving.whole, key, s.readWhole)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if s.ended.IsZero() {
		s.ended = time.Now()
	}
	s.whole, s.numbering, s.head = true, whole.numbering, whole.head
	s.state, s.checking = whole.state, whole.checking
	if !bytes.Equal(whole.html, s.article) {
		s.article = whole.html
		if err := s.sendArticle(whole); err != nil {
			return err
		}
	}
	if !s.mayGrow(whole) {
		return s.end()
	}
	return nil
}

// readWhole reads the answer with the stored numbering, since another answer of the conversation may have ended
// meanwhile.
func (s *liveStream) readWhole(rendering context.Context) (*wholeAnswer, error) {
	ctx, cancel := context.WithTimeout(rendering, askStore)
	defer cancel()
	call, err := s.p.call(ctx, s.r.Who.Tenant, s.answerID)
	if err != nil {
		return nil, err
	}
	s.p.captured.CatchUp(ctx)
	whole := &wholeAnswer{call: call, state: stateWords(call)}
	if whole.numbering, whole.head, err = s.number(ctx); err != nil {
		return nil, err
	}
	o := s.options
	whole.checking = s.p.isChecking(call)
	o.live, o.checking = false, whole.checking
	if o.trust, err = s.p.trustOf(ctx, s.r, call); err != nil {
		return nil, err
	}
	whole.signed = o.trust.manifest != nil
	numbering := maps.Clone(whole.numbering)
	o.numbering = &numbering
	v := s.p.answerView(rendering, call, &o)
	if caution := v.caution(); caution != "" {
		whole.state = strings.TrimSuffix(whole.state, ".") + caution
	}
	if whole.checking {
		whole.state += " Its quotes are being checked …"
	}
	if whole.byline, err = s.p.fragment("conversation", "byline", v); err != nil {
		return nil, err
	}
	whole.html, err = s.p.fragment("conversation", "answer", v)
	return whole, err
}

// sendArticle sends the complete answer, and the head of its conversation.
func (s *liveStream) sendArticle(whole *wholeAnswer) error {
	data := map[string]any{
		"html": string(s.article), "byline": string(whole.byline), "state": s.state,
		"whole": whole.call.Answer.Complete, "checking": whole.checking,
	}
	if s.head != nil {
		facts, err := s.p.fragment("conversation", "conversation-facts", s.head)
		if err != nil {
			return err
		}
		data["facts"] = string(facts)
	}
	return s.send("answer", data)
}

// mayGrow reports whether a complete answer may still get citations or a signature, or its sources are still to be
// read.
func (s *liveStream) mayGrow(whole *wholeAnswer) bool {
	a := whole.call.Answer
	isUnread := func(c ibid.Citation) bool { return c.Verification == nil }
	return s.p.isNew(whole.call, liveLate) && (a.Complete && len(a.Citations) == 0 ||
		s.p.o.Recheck != nil && slices.ContainsFunc(a.Citations, isUnread) || whole.call.Publish && !whole.signed)
}

// isNew reports whether an answer that can still change ended less than the given time ago.
func (p *Page) isNew(call *store.Call, than time.Duration) bool {
	return p.o.Bus != nil && call.Run != "" &&
		time.Since(call.Started.Add(call.Duration)) < than
}

// isChecking reports whether sources of an answer that has just ended are still to be read.
func (p *Page) isChecking(call *store.Call) bool {
	if p.o.Recheck == nil || !p.isNew(call, liveChecking) {
		return false
	}
	web := webSourcesOf(call.Answer)
	isUnread := func(c ibid.Citation) bool { return c.Verification == nil && web.hasOf(&c) }
	return slices.ContainsFunc(call.Answer.Citations, isUnread)
}

func (s *liveStream) end() error {
	if err := s.send("end", struct{}{}); err != nil {
		return err
	}
	return errLiveEnd
}

// tick sends what has changed.
func (s *liveStream) tick(ctx context.Context) error {
	now := time.Now()
	switch {
	case s.whole && now.Sub(s.ended) > liveLate:
		return s.end()
	case s.whole && s.checking && now.Sub(s.ended) > liveChecking:
		return s.poll(ctx)
	case s.whole:
		return nil
	case !s.ended.IsZero() && now.Sub(s.ended) > liveStore:
		return s.giveUp("The answer has ended, but was not kept.")
	case !s.ended.IsZero() && now.Before(s.again):
		return nil
	case !s.ended.IsZero():
		s.pause = min(max(2*s.pause, liveEvery), liveAgain)
		s.again = now.Add(s.pause)
		return s.poll(ctx)
	case s.arriving == nil && !s.known && now.Sub(s.heard) > liveUnknown:
		return s.giveUp("The answer was interrupted, and nothing of it was kept. Ask again.")
	case s.arriving == nil && now.Sub(s.heard) > liveQuiet:
		return s.giveUp("The answer broke off: nothing more of it has arrived.")
	}
	return s.sendBlocks(ctx)
}

func (s *liveStream) giveUp(why string) error {
	if err := s.send("gone", map[string]any{"text": why}); err != nil {
		return err
	}
	return s.end()
}

// sendBlocks sends the blocks of the text that are new or changed, unless that took much of the time since they were
// last sent.
func (s *liveStream) sendBlocks(ctx context.Context) error {
	begun := time.Now()
	if begun.Before(s.rested) {
		return nil
	}
	defer func() { s.rested = time.Now().Add(liveRest * time.Since(begun)) }()
	ctx, release := httpx.WithWorkTime(ctx)
	defer release()
	var a *ibid.Answer
	state := s.partial.state()
	if s.arriving != nil {
		a = s.arriving.call("").Answer
		state = liveState{len(a.Text), len(a.Sources), len(a.Citations), len(a.Queries)}
	}
	if state == s.seen {
		return nil
	}
	before := s.seen
	s.seen = state
	if a == nil {
		a = s.partial.answer()
	}
	if words := arrivingWords(a); words != s.state {
		s.state = words
		if err := s.send("state", map[string]string{"text": words}); err != nil {
			return err
		}
	}
	a = settled(a, s.shown)
	s.shown = len(a.Text)
	numbering := maps.Clone(s.numbering)
	o := s.options
	o.numbering = &numbering
	call := &store.Call{AnswerID: s.answerID, Run: s.run, Answer: a}
	if state.sources != before.sources || state.citations != before.citations { // cards are filled before their chips
		if err := s.sendSources(ctx, call, o); err != nil {
			return err
		}
	}
	l := s.p.layOut(ctx, call, &o)
	blocks := blocksOf(string(l.text))
	if ctx.Err() != nil {
		return httpx.WorkError(ctx, nil)
	}
	for i, html := range blocks {
		// The last block carries the number of blocks, so it is sent again when that changes.
		if i < len(s.blocks) && s.blocks[i] == html && (i < len(blocks)-1 || len(s.blocks) == len(blocks)) {
			continue
		}
		block := map[string]any{"n": i, "of": len(blocks), "html": html, "dir": direction(a.Text)}
		if err := s.send("block", block); err != nil {
			return err
		}
	}
	s.blocks = blocks
	return nil
}

// sendSources sends the list of sources so far.
func (s *liveStream) sendSources(ctx context.Context, call *store.Call, o answerOptions) error {
	numbering := maps.Clone(s.numbering)
	o.numbering = &numbering
	html, err := s.p.fragment("conversation", "sources", s.p.answerView(ctx, call, &o))
	if ctx.Err() != nil {
		return httpx.WorkError(ctx, err)
	}
	if err != nil {
		return err
	}
	return s.send("sources", map[string]string{"html": string(html)})
}

// arrivingWords returns the state of an arriving answer in words.
func arrivingWords(a *ibid.Answer) string {
	if n := len(a.Queries); a.Text == "" && n > 0 {
		return "Searching: " + text.Shorten(line(a.Queries[n-1]), maxHeading) + " …"
	}
	return "The answer is arriving."
}

// stateWords returns in a sentence how an answer ended.
func stateWords(call *store.Call) string {
	a, n := call.Answer, 0
	d := a.Document(&ibid.DocumentOptions{Bare: true})
	for i := range d.Sources {
		if d.Sources[i].Cited {
			n++
		}
	}
	switch {
	case a.Error != nil:
		return "The answer ended with an error."
	case isStopped(a):
		return "The answer was stopped."
	case !a.Complete:
		return "The answer broke off."
	case n == 0:
		return "The answer is complete."
	default:
		return "The answer is complete, with " + counted(n, "source", "sources") + "."
	}
}

// send sends an event.
func (s *liveStream) send(name string, data any) error {
	b, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return s.Event("", name, b)
}

// idPrefix returns the id prefix that a page asked for, if it is valid.
func idPrefix(s string) string {
	isOther := func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' }
	if len(s) > 32 || strings.ContainsFunc(s, isOther) {
		return ""
	}
	return s
}

// liveURL returns the address at which a script learns that something was added to a run after what is stored now;
// empty if there is none. Call it before reading the run, so that nothing is missed in between.
func (p *Page) liveURL(ctx context.Context, tenant, run string) (string, error) {
	if p.o.Bus == nil {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, askStore)
	defer cancel()
	last := int64(0)
	for {
		events, err := p.o.Store.Events(ctx, tenant, run, last, store.MaxLimit)
		if err != nil {
			return "", err
		}
		if len(events) == 0 {
			return runURL(run) + "/live?after=" + strconv.FormatInt(last, 10), nil
		}
		last = events[len(events)-1].Seq
	}
}

// liveRun tells a client that something was added to a run after the event after: a single event, changed, which ends
// the stream. The page then shows the run as it is now.
func (p *Page) liveRun(w *httpx.Reply, r *httpx.Request) error {
	id, err := r.PathID()
	if err != nil {
		return err
	}
	if p.o.Bus == nil {
		return errNotFound
	}
	release, ok := p.bounds.watching.Take(r.Who.Tenant)
	if !ok {
		return tooManyWatch("Reload the page to see what was added.")
	}
	defer release()
	listener, err := p.o.Bus.Listen(r.Context(), r.Who.Tenant, id)
	if err != nil {
		return gateway.Unavailable("The run cannot be watched at the moment.")
	}
	defer listener.Close()
	after := int64(number(r, "after"))
	p.stream(w, r, func(ctx context.Context, s *httpx.Stream) error {
		if err := s.Comment("watching\nretry: 5000"); err != nil {
			return err
		}
		return listener.Follow(ctx, p.o.Store, after, func(m bus.Message) error {
			switch {
			case m.Event != nil && m.Event.Kind == store.EventVerification:
				return nil // its sources were read again; nothing was added
			case m.Event != nil:
				_ = s.Event("", "changed", []byte("{}"))
				return errLiveEnd
			case m.Live != nil:
				return nil
			case !p.o.Guard.Still(ctx, r.Who):
				return errLiveEnd
			}
			return s.Comment("heartbeat")
		})
	})
	return nil
}

// tooManyWatch is the error for a tenant that already watches as much as it may.
func tooManyWatch(hint string) error {
	return gateway.TooMany(retryAfter, fmt.Sprintf("%d answers and runs are being watched already.", maxLive), hint)
}

// stream begins an event stream and calls tell, whose context ends when the client leaves or the server shuts down. A
// client that leaves is not an error.
func (p *Page) stream(w *httpx.Reply, r *httpx.Request, tell func(context.Context, *httpx.Stream) error) {
	s := w.Events(liveWrite)
	defer s.End()
	if r.Method == http.MethodHead {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(p.closing, cancel)()
	_ = tell(ctx, s)
}
