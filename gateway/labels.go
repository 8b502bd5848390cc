package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dunglas/httpsfv"

	"github.com/ibidhq/ibid/store"
)

// The request headers for ibid; see also [TokenHeader].
const (
	RunHeader          = "Ibid-Run"          // the run that the call belongs to; also set on responses
	StepHeader         = "Ibid-Step"         // its step in the run: 3;tool="summarize";after="1,2"
	ConversationHeader = "Ibid-Conversation" // the conversation that the call belongs to
	AgentHeader        = "Ibid-Agent"        // the agent that makes the call
	FollowsHeader      = "Ibid-Follows"      // the answer after which the call continues the conversation, or none
	PublishHeader      = "Ibid-Publish"      // whether its answer is published: yes or no; by default up to the token
)

// FollowsNone is the value of [FollowsHeader] for a call that starts its conversation over.
const FollowsNone = "none"

// AnswerHeader is the response header with the id under which the answer is kept.
const AnswerHeader = "Ibid-Answer"

const (
	// MaxName is the largest length in bytes of the ids of runs and conversations and of the names of agents and tools.
	MaxName = 128
	// maxStep is the highest number of a step, maxStepHeader the largest length in bytes of its header.
	maxStep       = 1_000_000
	maxStepHeader = 1024
	// maxAfter is how many steps one step may build on.
	maxAfter = 64
)

// labels are the values of a request's headers for ibid.
type labels struct {
	run, conversation, agent string
	named                    bool // the client named the run
	step                     store.Step
	publish                  string // yes, no, or empty if unspecified
	follows                  string // the value of [FollowsHeader]
}

// readLabels reads the headers for ibid and removes them. The error is a problem.
func readLabels(h http.Header) (labels, error) {
	var a labels
	for _, f := range [...]struct {
		name  string
		value *string
		check func(string) string
	}{
		{RunHeader, &a.run, CheckID},
		{ConversationHeader, &a.conversation, CheckID},
		{FollowsHeader, &a.follows, CheckID},
		{AgentHeader, &a.agent, CheckName},
		{PublishHeader, &a.publish, checkPublish},
	} {
		var err error
		if *f.value, err = readLabel(h, f.name, f.check); err != nil {
			return labels{}, err
		}
	}
	text, err := readLabel(h, StepHeader, nil)
	if err != nil {
		return labels{}, err
	}
	if _, isSet := h[StepHeader]; isSet {
		if a.step, err = parseStep(text); err != nil {
			return labels{}, badHeader(StepHeader, err.Error())
		}
	}
	a.named = a.run != ""
	for _, name := range []string{
		RunHeader, StepHeader, ConversationHeader, FollowsHeader, AgentHeader, PublishHeader, TokenHeader,
	} {
		delete(h, name)
	}
	removeSession(h)
	return a, nil
}

// traceparent matches the header of W3C Trace Context, with the id of the trace, which is not all zero.
var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?$`)

// traceOf returns the id of the trace that a request is part of, or "". Calls without a run of their own are a run
// together with the other calls and the spans of their trace.
func traceOf(h http.Header) string {
	m := traceparent.FindStringSubmatch(h.Get("Traceparent"))
	if m == nil || strings.Trim(m[1], "0") == "" {
		return ""
	}
	return m[1]
}

// Follows converts a value of [FollowsHeader] to that of [store.Call]'s Follows.
func Follows(value string) *string {
	switch value {
	case "":
		return nil
	case FollowsNone:
		return new("")
	}
	return &value
}

// readLabel returns the value of a header, empty if absent. If check is not nil, it returns what is wrong with a value.
func readLabel(h http.Header, name string, check func(string) string) (string, error) {
	values := h[name]
	if len(values) > 1 {
		return "", badHeader(name, "it appears more than once")
	}
	value := strings.Join(values, "")
	if check != nil && value != "" {
		if why := check(value); why != "" {
			return "", badHeader(name, why)
		}
	}
	return value, nil
}

func badHeader(name, why string) error {
	return NewProblem(CodeBadRequest, "header "+name+": "+why, "see docs/http.md for the Ibid- headers")
}

// CheckID returns what is wrong with the id of a run or conversation, or "" if it is valid.
func CheckID(s string) string {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("-_.:~@", c) < 0 {
			return "an id consists of letters, digits and any of -_.:~@"
		}
	}
	if s == "." || s == ".." {
		return "an id is used in paths, where these have another meaning"
	}
	return checkLength(s)
}

// CheckName returns what is wrong with the name of an agent or tool, or "" if it is valid.
func CheckName(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return "a name must be valid UTF-8 without control characters"
	}
	return checkLength(s)
}

// checkPublish returns what is wrong with a value of [PublishHeader], or "" if it is valid.
func checkPublish(s string) string {
	if s != publishYes && s != publishNo {
		return "it must be yes or no"
	}
	return ""
}

// The values of [PublishHeader].
const (
	publishYes = "yes"
	publishNo  = "no"
)

func checkLength(s string) string {
	if len(s) > MaxName {
		return fmt.Sprintf("%d bytes are more than %d", len(s), MaxName)
	}
	return ""
}

// parseStep parses the value of [StepHeader], an item of a structured field (RFC 9651): the step's number and, as
// parameters, the tool it calls and the earlier steps it builds on. Without the latter it builds on the step before it.
func parseStep(s string) (store.Step, error) {
	if len(s) > maxStepHeader {
		return store.Step{}, fmt.Errorf("%d bytes are more than %d", len(s), maxStepHeader)
	}
	item, err := httpsfv.UnmarshalItem([]string{s})
	if err != nil {
		return store.Step{}, errors.New(`it must be a number with string parameters: 3;tool="search";after="1,2"`)
	}
	number, _ := item.Value.(int64)
	step := store.Step{Number: int(number)}
	if number < 1 || number > maxStep {
		return store.Step{}, fmt.Errorf("it must begin with the step's number, from 1 to %d", maxStep)
	}
	for _, name := range item.Params.Names() {
		value, _ := item.Params.Get(name)
		text, ok := value.(string)
		switch {
		case ok && name == "tool" && text != "":
			if step.Tool = text; CheckName(text) != "" {
				return store.Step{}, errors.New("tool: " + CheckName(text))
			}
		case ok && name == "after":
			if step.After, err = parseAfter(text, step.Number); err != nil {
				return store.Step{}, err
			}
		default:
			return store.Step{}, fmt.Errorf("the parameters are tool and after, both strings; not %s", name)
		}
	}
	return step, nil
}

// parseAfter parses the numbers of the steps that step builds on. An empty list is not nil, which means the step
// before.
func parseAfter(s string, step int) ([]int, error) {
	after := []int{}
	if s == "" {
		return after, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		part = strings.Trim(part, " ")
		n, err := strconv.Atoi(part)
		if err != nil || part[0] == '+' || n < 1 || n >= step || slices.Contains(after, n) || len(after) == maxAfter {
			return nil, fmt.Errorf(
				"after lists up to %d numbers of earlier steps, each once and separated by commas", maxAfter,
			)
		}
		after = append(after, n)
	}
	return after, nil
}
