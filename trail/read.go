package trail

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
)

// The causes of errors of [Read].
var (
	ErrEmpty = errors.New("nothing but white space")
	ErrNoRun = errors.New("not a run")
	ErrLimit = errors.New("over the limit")
	// ErrListing comes with ErrNoRun if the input is from GET /v1/runs/{run}, which returns a page of a run's calls.
	ErrListing = errors.New("an element of GET /v1/runs/{run}, which lists the calls of a run page by page")
)

// malformedError tells how the input is not a run. It is [ErrNoRun] to errors.Is.
type malformedError struct{ err error }

func malformed(format string, args ...any) error {
	return &malformedError{fmt.Errorf(format, args...)}
}

func (e *malformedError) Error() string   { return e.err.Error() }
func (e *malformedError) Unwrap() []error { return []error{ErrNoRun, e.err} }

// The limits of [Read]. Exceeding one is an error.
const (
	maxSteps   = 100_000   // of one run, and of each run nested in it
	maxSources = 1_000_000 // of one run, with the runs nested in it
	MaxNested  = 16        // how deep runs may be nested in steps of runs
)

// Read reads a run: one JSON object with its steps, a list of steps, or JSON lines, each with a step or members of the
// run, in any order. docs/trail.md lists the members. Numbers are taken as given.
//
// Odd values are kept if possible and reported in Trail.Issues and Step.Issues, and unknown members are kept.
// [Trail.Check] reports what is wrong with the run as a whole. Read returns an error if the input has no usable run: it
// wraps [ErrEmpty], [ErrNoRun] or [ErrLimit], and tells where.
func Read(b []byte) (*Trail, error) {
	r := newReader()
	t, err := r.document(b)
	if err == nil && r.headers == 0 && len(t.Steps) == 0 {
		err = malformed("a list without steps")
	}
	if err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	r.number(t)
	t.Complete()
	return t, nil
}

// ReadSteps reads steps without their run: an object, a list of objects, or JSON lines. They keep their order, and
// steps without a number have the number 0. Issues of the input as a whole are those of the first step. Otherwise it is
// like [Read].
func ReadSteps(b []byte) ([]Step, error) {
	r := newReader()
	t, err := r.document(b)
	if err == nil && r.headers > 0 {
		err = malformed("it has members of a run, want those of a step")
	}
	if err != nil {
		return nil, fmt.Errorf("read steps: %w", err)
	}
	if len(t.Steps) > 0 && len(t.Issues) > 0 {
		t.Steps[0].Issues = slices.Concat(t.Issues, t.Steps[0].Issues)
	}
	return t.Steps, nil
}

// UnmarshalJSON reads a run as [Read] does.
func (t *Trail) UnmarshalJSON(b []byte) error {
	read, err := Read(b)
	if err == nil {
		*t = *read
	}
	return err
}

// UnmarshalJSON reads one step as [Read] does.
func (s *Step) UnmarshalJSON(b []byte) error {
	steps, err := ReadSteps(b)
	if err == nil && len(steps) != 1 {
		err = fmt.Errorf("read step: %w", malformed("%d steps", len(steps)))
	}
	if err == nil {
		*s = steps[0]
	}
	return err
}

// reader reads one document, or one run nested in it.
type reader struct {
	depth      int
	sources    *int // how many more the document may have
	headers    int  // objects with members of a run
	unnumbered []int
}

func newReader() *reader { return &reader{sources: new(maxSources)} }

func (r *reader) document(b []byte) (*Trail, error) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, ErrEmpty
	}
	d, err := split(b)
	if err != nil {
		return nil, err
	}
	invalid := invalidUTF8(b)
	values, t := d.all, &Trail{Issues: slices.Concat(invalid, d.issues)}
	for i, v := range values {
		if len(invalid) > 0 { // what is kept unread would not be UTF-8 either
			v.raw = bytes.Map(func(r rune) rune { return r }, v.raw) // each bad byte becomes a replacement character
		}
		place := ""
		if d.lines || len(values) > 1 {
			place = fmt.Sprintf("line %d", v.line)
		}
		if v.raw[0] == '[' && len(values) == 1 {
			err = r.list(t, v.raw)
		} else {
			err = r.element(t, v.raw, place)
		}
		if err != nil {
			return nil, err
		}
		values[i].raw = nil // it was copied
	}
	return t, nil
}

// list reads a document that is a list of steps, or of messages.
func (r *reader) list(t *Trail, raw json.RawMessage) error {
	if isConversation(raw) {
		t.Extra = map[string]json.RawMessage{"messages": raw}
		t.readOther()
		r.headers++
		return nil
	}
	for i, element := range elementsOf(raw) {
		place := fmt.Sprintf("[%d]", i)
		members := readObject(element)
		if isNull(element) {
			continue
		}
		if members == nil {
			return malformed("%s: %s, want a step", place, describe(element))
		} else if isRun(members) {
			return malformed("%s: a run, want a step", place)
		}
		if err := r.step(t, members, place); err != nil {
			return err
		}
	}
	return nil
}

// element reads one value of a document: the run, or a step of it.
func (r *reader) element(t *Trail, raw json.RawMessage, place string) error {
	members := readObject(raw)
	switch other := otherDocument(members); {
	case members == nil:
		return malformed("%s%s, want an object", prefixed(place), describe(raw))
	case other != "":
		return malformed("%s%s, want a run", prefixed(place), other)
	case isRun(members), isForeignRun(members):
		return r.run(t, members, place)
	case present(members, stepNames) != "":
		return r.step(t, members, place)
	case present(members, runNames) != "":
		return r.run(t, members, place)
	}
	for _, name := range slices.Concat(certainRunNames, runNames, stepNames) {
		if _, ok := members[name]; ok {
			return malformed("%sall its members of a run are null, such as %s", prefixed(place), name)
		}
	}
	return malformed(
		"%san object without a member of a run or a step, such as reasoning_steps or step_number", prefixed(place),
	)
}

func prefixed(place string) string {
	if place == "" {
		return ""
	}
	return place + ": "
}

// otherDocument returns which other kind of ibid's documents an object without steps is, since some of their members
// have the names of a step's; "" if none.
func otherDocument(members map[string]json.RawMessage) string {
	has := func(names string) bool {
		for name := range strings.FieldsSeq(names) {
			if _, ok := members[name]; !ok {
				return false
			}
		}
		return !isRun(members)
	}
	switch {
	case has("agent_id claims"), has("signature_input body"):
		return "a manifest, which ibid verify reads"
	case has("text unit citations"):
		return "an answer document, which ibid cite and ibid verify read"
	}
	return ""
}

// isRun reports whether an object is a run, whatever else it has.
func isRun(members map[string]json.RawMessage) bool { return present(members, certainRunNames) != "" }

// Members that identify an object: as a run whatever else it has, as a step, and otherwise as a run.
var (
	certainRunNames = strings.Fields("reasoning_steps steps original_question final_answer")
	stepNames       = strings.Fields(`step_number step intermediate_answer source_attributions context_used
		retrieved_documents search_results tool reasoning_trace after question confidence_score inputs outputs answers
		no_sources sources confidence execution_time error nested_run`)
	runNames = strings.Fields("run_id run agent answer started_at finished_at strategy question messages")
)

// run reads the members of the run itself.
func (r *reader) run(t *Trail, members map[string]json.RawMessage, place string) error {
	h := &Trail{}
	o := &object{place: place, members: members, report: &report{}}
	o.issuesOf()
	o.id(&h.ID, "run_id", "run", "id")
	o.text(&h.Agent, "agent")
	o.text(&h.Question, "original_question", "question")
	o.text(&h.Answer, "final_answer")
	if string(members["answer"]) != "" && members["answer"][0] == '"' && h.Answer == "" {
		o.text(&h.Answer, "answer")
	}
	var captured struct {
		ID string `json:"answer_id"`
	}
	_ = json.Unmarshal(members["answer"], &captured) // anything but a document is reported below
	if a := new(ibid.Answer); o.into(a, "an answer document", "answer") {
		h.Final, h.AnswerID = a, captured.ID
		h.Answer = cmp.Or(h.Answer, a.Text)
	}
	o.time(&h.Started, "started_at")
	o.time(&h.Finished, "finished_at")
	o.id(&h.Parent, "parent_run_id")
	o.text(&h.Strategy, "strategy")
	elements, name, err := o.list("reasoning_steps", "steps")
	if err != nil {
		return malformed("%w", err)
	}
	h.Extra = o.leftover("source_summary", "display", "sentences", "uncited_share", "page")
	if r.headers++; r.headers == 1 {
		h.Issues = append(t.Issues, o.report.issues...)
		h.Steps = t.Steps
		if h.ID, err = oneRun(t.ID, h.ID, place); err != nil {
			return err
		}
		*t = *h
	} else {
		h.Issues = o.report.issues
		if err := t.merge(h, place); err != nil {
			return err
		}
	}
	if len(elements) == 0 && len(t.Steps) == 0 {
		if elements = t.takeOtherSteps(); len(elements) == 0 {
			t.readOther()
		}
	}
	for i, element := range elements {
		members := readObject(element)
		place := o.at(fmt.Sprintf("%s[%d]", name, i))
		if isNull(element) {
			continue
		}
		if members == nil {
			return malformed("%s: %s, want a step", place, describe(element))
		}
		for _, step := range foreignSteps(members) {
			if err := r.step(t, step, place); err != nil {
				return err
			}
		}
	}
	if len(elements) > 0 {
		t.readNames()
	}
	return nil
}

// issuesOf reads the issues that an earlier reading reported.
func (o *object) issuesOf() {
	var issues []ibid.Issue
	if o.into(&issues, "a list of issues", "issues") {
		o.report.issues = append(o.report.issues, issues...)
		o.report.prior = slices.Clone(issues[:min(len(issues), maxPrior)])
	}
}

// oneRun returns the id of the run that a and b name, which must be the same.
func oneRun(a, b, place string) (string, error) {
	if a != "" && b != "" && a != b {
		return "", malformed("%sit belongs to the run %q, what precedes it to %q: want one run", prefixed(place), b, a)
	}
	return cmp.Or(a, b), nil
}

// merge adds to t what another object has about the same run. If values differ, the first one is kept.
func (t *Trail) merge(h *Trail, place string) (err error) {
	if t.ID, err = oneRun(t.ID, h.ID, place); err != nil {
		return err
	}
	differ := func(name, a, b string) string {
		if a != "" && b != "" && a != b {
			detail := prefixed(place) + "another " + name + ": " + Excerpt(b, 0)
			t.Issues = append(t.Issues, ibid.Issue{Code: issueRunRepeated, Detail: detail})
		}
		return cmp.Or(a, b)
	}
	t.Question = differ("original_question", t.Question, h.Question)
	t.Answer = differ("final_answer", t.Answer, h.Answer)
	t.Agent, t.Strategy = differ("agent", t.Agent, h.Agent), differ("strategy", t.Strategy, h.Strategy)
	t.Parent = differ("parent_run_id", t.Parent, h.Parent)
	if t.Final == nil {
		t.Final, t.AnswerID = h.Final, h.AnswerID
	}
	if t.Started.IsZero() {
		t.Started = h.Started
	}
	if t.Finished.IsZero() {
		t.Finished = h.Finished
	}
	t.Issues = append(t.Issues, h.Issues...)
	for name, raw := range h.Extra {
		if t.Extra == nil {
			t.Extra = make(map[string]json.RawMessage)
		}
		if _, ok := t.Extra[name]; !ok {
			t.Extra[name] = raw
		}
	}
	return nil
}

// number numbers the steps that have no number, and sorts all steps by number.
func (r *reader) number(t *Trail) {
	taken := make(map[int]bool, len(t.Steps))
	without := make(map[int]bool, len(r.unnumbered))
	for _, i := range r.unnumbered {
		without[i] = true
	}
	for i := range t.Steps {
		if !without[i] {
			taken[t.Steps[i].Number] = true
		}
	}
	numbered := len(r.unnumbered) < len(t.Steps) // some steps are
	last := 0
	for i := range t.Steps {
		s := &t.Steps[i]
		if !without[i] {
			last = s.Number
			continue
		}
		for last++; taken[last]; last++ {
		}
		s.Number, taken[last] = last, true
		if numbered {
			detail := fmt.Sprintf("step %d: it has no number of its own", last)
			s.Issues = append(s.Issues, ibid.Issue{Code: issueUnnumbered, Detail: detail})
		}
	}
	slices.SortStableFunc(t.Steps, func(a, b Step) int { return a.Number - b.Number })
}

// value is one value of a document.
type value struct {
	raw  json.RawMessage
	line int // from 1
}

// input holds the values of a document.
type input struct {
	all    []value
	issues []ibid.Issue
	lines  bool // one value a line; some lines were left out
}

// split splits a document into its values. If there is one a line, a bad line is reported and skipped, since a program
// that crashes while writing leaves one. NaN and Infinity, which are not JSON but which many programs write, are
// reported and read as null.
func split(b []byte) (*input, error) {
	if values, ok := decode(b); ok {
		return &input{all: values}, nil
	}
	text := withoutNaN(b)
	if values, ok := decode(text.fixed); ok {
		return &input{all: values, issues: text.issues()}, nil
	}
	return text.lines()
}

// decode returns the values of a document, and whether it is nothing but JSON.
func decode(b []byte) (values []value, ok bool) {
	if json.Valid(b) { // one value, as mostly
		trimmed := bytes.TrimLeft(b, " \t\r\n")
		before := b[:len(b)-len(trimmed)]
		return []value{{bytes.TrimRight(trimmed, " \t\r\n"), 1 + bytes.Count(before, []byte("\n"))}}, true
	}
	d := json.NewDecoder(bytes.NewReader(b))
	line, at := 1, 0
	for {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return values, errors.Is(err, io.EOF)
		}
		end := int(d.InputOffset())
		begin := end - len(raw)
		line += bytes.Count(b[at:begin], []byte("\n"))
		values = append(values, value{raw, line})
		line += bytes.Count(raw, []byte("\n"))
		at = end
	}
}

// nearlyJSON is a document in which NaN and infinities were replaced by null.
type nearlyJSON struct {
	original, fixed []byte
	tokens          []token
}

// token is a NaN or an infinity that was replaced.
type token struct {
	at, fixedAt int // its offset in the original, and that of the null in its place
	text        string
}

const null = "null"

// withoutNaN replaces NaN, Infinity and -Infinity outside strings by null. A string ends with its line at the latest.
func withoutNaN(b []byte) *nearlyJSON {
	text := &nearlyJSON{original: b, fixed: b}
	if !bytes.Contains(b, []byte("NaN")) && !bytes.Contains(b, []byte("Infinity")) {
		return text
	}
	text.fixed = make([]byte, 0, len(b)+len(b)/16)
	from := 0
	for _, at := range stringOrNaN.FindAllIndex(b, -1) {
		if b[at[0]] == '"' {
			continue
		}
		text.fixed = append(text.fixed, b[from:at[0]]...)
		text.tokens = append(text.tokens, token{at[0], len(text.fixed), string(b[at[0]:at[1]])})
		text.fixed = append(text.fixed, null...)
		from = at[1]
	}
	text.fixed = append(text.fixed, b[from:]...)
	return text
}

// stringOrNaN matches a string, a NaN or an infinity.
var stringOrNaN = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"?|NaN|-?Infinity`)

// maxTokens is how many tokens are reported one by one.
const maxTokens = 100

// issues reports the tokens that were replaced.
func (n *nearlyJSON) issues() (issues []ibid.Issue) {
	for i, t := range n.tokens {
		detail := fmt.Sprintf("%s: %s is not a JSON number; it counts as null", place(n.original, t.at), t.text)
		if i == maxTokens {
			detail = fmt.Sprintf("%d more numbers are NaN or Infinity", len(n.tokens)-i)
		}
		issues = append(issues, ibid.Issue{Code: issueNumber, Detail: detail})
		if i == maxTokens {
			break
		}
	}
	return issues
}

// place returns line and column of an offset, both from 1. Columns count characters.
func place(b []byte, at int) string {
	at = min(max(0, at), len(b))
	line := bytes.LastIndexByte(b[:at], '\n') + 1
	return fmt.Sprintf("line %d, column %d", 1+bytes.Count(b[:at], []byte("\n")), 1+utf8.RuneCount(b[line:at]))
}

// invalidUTF8 reports the bytes of a document that are not UTF-8.
func invalidUTF8(b []byte) []ibid.Issue {
	if utf8.Valid(b) {
		return nil
	}
	first, n := 0, 0
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			if n++; n == 1 {
				first = i
			}
		}
		i += size
	}
	if n == 0 {
		return nil
	}
	detail := fmt.Sprintf("%s: bytes that are not UTF-8, %d in all; they are read as U+FFFD", place(b, first), n)
	return []ibid.Issue{{Code: issueUTF8, Detail: detail}}
}

// lines reads a document with a value in each line.
func (n *nearlyJSON) lines() (*input, error) {
	d := &input{issues: n.issues(), lines: true}
	number := 0
	for line := range bytes.SplitSeq(n.fixed, []byte("\n")) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var raw json.RawMessage
		err := json.Unmarshal(line, &raw)
		switch {
		case err == nil && line[0] == '{':
			d.all = append(d.all, value{raw, number})
		case len(d.all) == 0:
			return nil, n.whyBad()
		case err == nil:
			return nil, malformed("line %d: %s, want a step", number, describe(raw))
		default:
			d.issues = append(
				d.issues,
				ibid.Issue{Code: issueBadJSON, Detail: fmt.Sprintf("line %d: %v; it was left out", number, err)},
			)
		}
	}
	return d, nil
}

// whyBad returns an error that tells why a document is not JSON.
func (n *nearlyJSON) whyBad() error {
	if b := n.original; bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) {
		return malformed("it is UTF-16, want UTF-8")
	} else if bytes.IndexByte(b, 0) >= 0 || !utf8.Valid(b) {
		return malformed("it is not text, want JSON")
	}
	var raw json.RawMessage
	err := json.Unmarshal(n.fixed, &raw)
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return malformed("%w", err)
	}
	at := int(syntax.Offset) - 1
	if strings.HasPrefix(err.Error(), "unexpected end") {
		at = len(bytes.TrimRight(n.fixed, " \t\r\n"))
	}
	for i := len(n.tokens) - 1; i >= 0; i-- {
		if t := &n.tokens[i]; t.fixedAt+len(null) <= at {
			at += t.at + len(t.text) - t.fixedAt - len(null)
			break
		}
	}
	return malformed("%s: %w", place(n.original, at), err)
}
