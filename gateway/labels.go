package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dunglas/httpsfv"

	"github.com/ibidhq/ibid/store"
)

// The headers of a request that are for ibid; see [TokenHeader] too.
const (
	RunHeader          = "Ibid-Run"          // the run that the call is part of; in responses too
	StepHeader         = "Ibid-Step"         // its step: 3;tool="summarize";after="1,2"
	ConversationHeader = "Ibid-Conversation" // the conversation that it is part of
	AgentHeader        = "Ibid-Agent"        // who makes it
	FollowsHeader      = "Ibid-Follows"      // the answer whose place in the conversation it comes behind, or none
	PublishHeader      = "Ibid-Publish"      // whether its answer is published: yes or no; else as the token says
)

// FollowsNone is the value of [FollowsHeader] for a call that begins its conversation again.
const FollowsNone = "none"

// AnswerHeader is the header of a response that says under which id its answer is kept.
const AnswerHeader = "Ibid-Answer"

const (
	// MaxName is how many bytes the ids of runs and conversations and the names of agents and tools may have.
	MaxName = 128
	// maxStep is the highest number of a step, and maxStepHeader how many bytes the header may have that says it.
	maxStep       = 1_000_000
	maxStepHeader = 1024
	// maxAfter is on how many steps another may build.
	maxAfter = 64
)

// labels are what the headers of a request say to ibid.
type labels struct {
	run, conversation, agent string
	named                    bool // the client named the run
	step                     store.Step
	publish                  string // yes, no, or empty: not said
	follows                  string // as [FollowsHeader] has it
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
	if _, said := h[StepHeader]; said {
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

// Follows returns what [store.Call] has as Follows, of the value of [FollowsHeader].
func Follows(value string) *string {
	switch value {
	case "":
		return nil
	case FollowsNone:
		return new("")
	}
	return &value
}

// readLabel returns the value of a header; empty: it is not there. check says what is wrong with one; nil: nothing is.
func readLabel(h http.Header, name string, check func(string) string) (string, error) {
	values := h[name]
	if len(values) > 1 {
		return "", badHeader(name, "it is there more than once")
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
	return NewProblem(CodeBadRequest, "header "+name+": "+why, "docs/http.md says what the Ibid- headers may hold")
}

// CheckID says what is wrong with the id of a run or a conversation; empty: nothing.
func CheckID(s string) string {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("-_.:~@", c) < 0 {
			return "an id has letters, digits and any of -_.:~@"
		}
	}
	if s == "." || s == ".." {
		return "an id stands in paths, where these mean something else"
	}
	return checkLength(s)
}

// CheckName says what is wrong with the name of an agent or a tool; empty: nothing.
func CheckName(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return "a name has no control characters and is valid UTF-8"
	}
	return checkLength(s)
}

// checkPublish says what is wrong with the value of [PublishHeader]; empty: nothing.
func checkPublish(s string) string {
	if s != publishYes && s != publishNo {
		return "it is neither yes nor no"
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

// parseStep reads the value of [StepHeader], an item of a structured field (RFC 9651): the step's number and, as
// parameters, the tool that it is and the steps that it builds on, all of them earlier ones. Without the latter it
// builds on the step before it.
func parseStep(s string) (store.Step, error) {
	if len(s) > maxStepHeader {
		return store.Step{}, fmt.Errorf("%d bytes are more than %d", len(s), maxStepHeader)
	}
	item, err := httpsfv.UnmarshalItem([]string{s})
	if err != nil {
		return store.Step{}, errors.New(`it is a number, and parameters that are strings: 3;tool="search";after="1,2"`)
	}
	number, _ := item.Value.(int64)
	step := store.Step{Number: int(number)}
	if number < 1 || number > maxStep {
		return store.Step{}, fmt.Errorf("it begins with the step's number, from 1 to %d", maxStep)
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
			return store.Step{}, fmt.Errorf("the parameters are tool and after, each as a string; not %s", name)
		}
	}
	return step, nil
}

// parseAfter reads the numbers of the steps that step builds on. None is not nil: nil means the step before.
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
