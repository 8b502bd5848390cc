package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/chat"
	"github.com/ibidhq/ibid/internal/call"
)

const (
	// chatOff is the word for nobody who can be asked.
	chatOff = "off"
	// defaultChatLate is how long a stream of chat waits for citations that come after the answer.
	defaultChatLate = 10 * time.Second
)

// chatSetting says whom POST /v1/chat asks.
type chatSetting struct {
	asked chatFlag
	late  time.Duration
}

// asked is one who can be asked.
type asked struct {
	upstream, model, instructions string
	tools                         []json.RawMessage
}

// chatFlag is the value of --chat. In a variable of the environment, several are separated by spaces.
type chatFlag []asked

// String returns what was said.
func (f *chatFlag) String() string {
	words := make([]string, len(*f))
	for i, a := range *f {
		if words[i] = a.upstream; a.model != "" {
			words[i] += "=" + a.model
		}
	}
	return strings.Join(words, " ")
}

// Type returns what the help calls the value.
func (f *chatFlag) Type() string { return "NAME[=MODEL]" }

// Set adds some who can be asked.
func (f *chatFlag) Set(text string) error {
	for one := range strings.FieldsSeq(text) {
		name, model, _ := strings.Cut(one, "=")
		if name == "" {
			return errors.New("must be NAME or NAME=MODEL, such as openai=gpt-5")
		}
		*f = append(*f, asked{upstream: name, model: model})
	}
	return nil
}

// addFlags gives serve the flags of chat.
func (s *chatSetting) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(
		&s.asked,
		"chat",
		"whom POST /v1/chat asks, the first unless told: the `NAME[=MODEL]` of an upstream; repeatable; off (default all)",
	)
	flags.DurationVar(
		&s.late, "chat-late", defaultChatLate,
		"keep a stream of chat open for so long, where citations may come after the answer",
	)
}

// check finds what cannot be asked.
func (c *config) checkChat() error {
	if c.chat.late < 0 {
		return &usageError{fmt.Errorf("chat-late is negative: %v", c.chat.late), ""}
	}
	for _, a := range c.chat.asked {
		if a.upstream == chatOff && len(c.chat.asked) == 1 {
			return nil
		}
		u := c.settings[a.upstream]
		if u == nil {
			return &usageError{
				fmt.Errorf("chat: there is no upstream %s", oneLine(a.upstream)),
				"--upstream NAME=URL,provider=… adds one",
			}
		}
		if !canAsk(u.provider) {
			return &usageError{
				fmt.Errorf("chat: ibid cannot write requests for the provider %q of %s", u.provider, a.upstream),
				"it can for gemini, openai, xai, cohere, anthropic, perplexity, openrouter and mistral",
			}
		}
	}
	return nil
}

// canAsk reports whether requests of a provider can be written.
func canAsk(provider string) bool {
	_, err := call.BuildRequest(
		provider,
		&call.Chat{Model: "m", Messages: []call.Message{{Role: call.RoleUser, Text: "?"}}},
	)
	return err == nil
}

// chatProviders returns whom chat asks. Unless somebody was named, it is every upstream whose requests can be written,
// those with a key first.
func (c *config) chatProviders(w world) []chat.Provider {
	if len(c.chat.asked) == 1 && c.chat.asked[0].upstream == chatOff {
		return nil
	}
	list := c.chat.asked
	if len(list) == 0 {
		list = c.allChats()
	}
	all := make([]chat.Provider, 0, len(list))
	for _, a := range list {
		u := c.settings[a.upstream]
		all = append(all, chat.Provider{
			Upstream:     a.upstream,
			Provider:     u.provider,
			Model:        a.model,
			Key:          firstEnv(w, keyVariables(u.keyEnv, u, u.provider)),
			Tools:        a.tools,
			Instructions: a.instructions,
		})
	}
	if len(c.chat.asked) == 0 {
		slices.SortStableFunc(all, func(a, b chat.Provider) int {
			return cmp.Compare(without(a.Key), without(b.Key))
		})
	}
	return all
}

// without returns 1 for an empty text and 0 for any other.
func without(s string) int {
	if s == "" {
		return 1
	}
	return 0
}

// allChats returns every upstream whose requests can be written: providers in the order of the documentation, then
// others by name.
func (c *config) allChats() []asked {
	var names []string
	for _, p := range call.Providers() {
		names = append(names, p.Name)
	}
	for _, u := range c.upstreamList() {
		if !slices.Contains(names, u.Name) {
			names = append(names, u.Name)
		}
	}
	var list []asked
	for _, name := range names {
		if u := c.settings[name]; u != nil && canAsk(u.provider) {
			list = append(list, asked{upstream: name})
		}
	}
	return list
}

// readChat reads the member chat: names as the flag takes them, or mappings that say more. Where the flag was given it
// counts.
func (f *configFile) readChat(c *config, said bool, e entry) {
	var list chatFlag
	for _, one := range sequence(e) {
		switch one.value.(type) {
		case *ast.MappingNode, *ast.MappingValueNode:
			list = append(list, f.asked(one))
		default:
			if err := list.Set(f.text(one)); err != nil {
				f.bad(one, "%v", err)
			}
		}
	}
	if f.err == nil && !said {
		c.chat.asked = list
	}
}

func (f *configFile) asked(of entry) asked {
	var a asked
	for _, e := range f.mapping(of.value) {
		if f.err != nil {
			return a
		}
		switch e.key {
		case "upstream":
			a.upstream = f.text(e)
		case "model":
			a.model = f.text(e)
		case "instructions":
			a.instructions = f.text(e)
		case "tools":
			a.tools = f.tools(e)
		default:
			f.unknown(e, []string{"upstream", "model", "instructions", "tools"})
		}
	}
	if a.upstream == "" && f.err == nil {
		_ = f.fail(of.at, "chat needs an upstream", "- {upstream: openai, model: gpt-5}") // it is kept in f
	}
	return a
}
