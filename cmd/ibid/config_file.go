package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
	"github.com/spf13/pflag"
)

// maxConfig is how long a configuration file may be, in bytes.
const maxConfig = 1 << 20

// fileError is a mistake in a configuration file.
type fileError struct {
	at   string // FILE:LINE:COLUMN
	what string
	hint string
}

func (e *fileError) Error() string { return e.at + ": " + e.what }

// configFile reads one configuration file. The first mistake ends it.
type configFile struct {
	name string
	err  error
	kept map[string]string // by provider: where its retention was said
}

// entry is one member of a mapping.
type entry struct {
	key   string
	at    *token.Token
	value ast.Node
}

// readFile sets what neither flags nor variables have set.
func (c *config) readFile(flags *pflag.FlagSet) error {
	data, err := os.ReadFile(c.file)
	if err != nil {
		return fmt.Errorf("%w: %w", errConfig, err)
	}
	if len(data) > maxConfig {
		return &usageError{
			fmt.Errorf("%s: it has more than %d bytes", c.file, maxConfig), "is this a configuration file?",
		}
	}
	f := &configFile{name: c.file, kept: map[string]string{}}
	parsed, err := parser.ParseBytes(data, 0)
	if err != nil {
		return f.syntax(err)
	}
	if len(parsed.Docs) > 1 && parsed.Docs[1].Body != nil {
		return f.fail(parsed.Docs[1].Body.GetToken(), "there is a second document", "a configuration is one")
	}
	if len(parsed.Docs) == 0 || parsed.Docs[0].Body == nil {
		return nil
	}
	for _, e := range f.mapping(parsed.Docs[0].Body) {
		switch e.key {
		case "upstreams":
			f.upstreams(c, e.value)
		case "retention":
			f.retention(c, e.value)
		case "strategies":
			f.readStrategies(c, e.value)
		case "checkers":
			f.readCheckers(c, e.value)
		case "chat":
			f.readChat(c, flags.Lookup("chat").Changed, e)
		default:
			f.flag(flags, e)
		}
		if f.err != nil {
			break
		}
	}
	return f.err
}

// notInFile are the flags that make no sense in a file, and upstream, which has a form of its own there.
func notInFile() []string { return []string{"config", "check", "help", "address-file", "upstream"} }

// flag sets one flag.
func (f *configFile) flag(flags *pflag.FlagSet, e entry) {
	known := flags.Lookup(e.key)
	if known == nil || slices.Contains(notInFile(), e.key) {
		names := []string{"upstreams", "retention", "strategies", "checkers"}
		flags.VisitAll(func(one *pflag.Flag) {
			if !slices.Contains(notInFile(), one.Name) {
				names = append(names, one.Name)
			}
		})
		f.unknown(e, names)
		return
	}
	var values []string
	switch known.Value.(type) {
	case *wordList, *prefixList:
		values = f.list(e.value)
	default:
		values = []string{f.scalar(e.value, known.Value.Type() == "bool")}
	}
	if f.err != nil || known.Changed {
		return
	}
	for _, value := range values {
		if err := known.Value.Set(value); err != nil {
			f.bad(e, "%v", flagError(known, err))
			return
		}
	}
}

// flagError says what is wrong with a value in words that do not speak of Go.
func flagError(f *pflag.Flag, err error) error {
	if f.Value.Type() == "duration" {
		return errors.New("must be a duration such as 250ms, 30s or 1h")
	}
	return err
}

// upstreams reads the member upstreams.
func (f *configFile) upstreams(c *config, node ast.Node) {
	for _, e := range f.mapping(node) {
		if err := checkUpstreamName(e.key); err != nil {
			_ = f.fail(e.at, err.Error(), "")
			return
		}
		u := &upstreamSetting{name: e.key}
		c.settings[e.key] = u
		if _, isNull := e.value.(*ast.NullNode); isNull {
			continue
		}
		members := f.mapping(e.value)
		for _, m := range members {
			f.upstream(u, m)
		}
		for _, m := range members {
			if m.key == "retention" && f.err == nil {
				f.upstreamRetention(c, u, m)
			}
		}
	}
}

func (f *configFile) upstream(u *upstreamSetting, e entry) {
	if f.err != nil {
		return
	}
	var err error
	switch e.key {
	case "url":
		u.url, err = upstreamURL(f.text(e))
	case "provider":
		u.provider = f.text(e)
	case "key_env":
		u.keyEnv = f.text(e)
	case "retention":
		// It needs the provider, which may stand after it.
	case "backfill":
		for _, rule := range sequence(e) {
			u.backfill = append(u.backfill, f.backfill(rule))
		}
	default:
		f.unknown(e, []string{"url", "provider", "key_env", "retention", "backfill"})
	}
	if err != nil && f.err == nil {
		f.bad(e, "%v", err)
	}
}

func (f *configFile) backfill(of entry) *backfillSetting {
	b := &backfillSetting{}
	for _, e := range f.mapping(of.value) {
		if f.err != nil {
			return b
		}
		switch e.key {
		case "route":
			b.route = f.text(e)
		case "provider":
			b.provider = f.text(e)
		case "model":
			b.model = f.text(e)
		case "tools":
			b.tools = f.tools(e)
		case "messages":
			b.messages = f.messages(e)
		case "timeout":
			b.timeout = f.duration(e)
		case "key_env":
			b.keyEnv = f.text(e)
		default:
			f.unknown(e, []string{"route", "provider", "model", "tools", "messages", "timeout", "key_env"})
		}
	}
	return b
}

// sequence returns the values of a member that is one value or a list of them.
func sequence(e entry) []entry {
	list, ok := e.value.(*ast.SequenceNode)
	if !ok {
		return []entry{e}
	}
	entries := make([]entry, len(list.Values))
	for i, value := range list.Values {
		entries[i] = entry{e.key, value.GetToken(), value}
	}
	return entries
}

// tools reads tools in the provider's own words, which are JSON in the end.
func (f *configFile) tools(e entry) []json.RawMessage {
	var tools []json.RawMessage
	for _, one := range sequence(e) {
		var tool map[string]any
		if err := yaml.NodeToValue(one.value, &tool); err != nil {
			f.bad(one, "must be what the provider's API takes, such as {google_search: {}}, not %s", kindOf(one.value))
			return nil
		}
		data, err := json.Marshal(tool)
		if err != nil {
			f.bad(one, "cannot be JSON: %v", err)
			return nil
		}
		tools = append(tools, data)
	}
	return tools
}

// messages reads how many messages of the conversation go along.
func (f *configFile) messages(e entry) int {
	text := f.scalar(e.value, false)
	if text == "all" {
		return -1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		f.bad(e, "must be a number of messages from 1 on, or all")
	}
	return n
}

func (f *configFile) duration(e entry) time.Duration {
	d, err := time.ParseDuration(f.text(e))
	if (err != nil || d <= 0) && f.err == nil {
		f.bad(e, "must be a duration such as 250ms, 30s or 1h")
	}
	return d
}

// mapping returns the members of a mapping.
func (f *configFile) mapping(node ast.Node) []entry {
	var values []*ast.MappingValueNode
	switch n := node.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		_ = f.fail(node.GetToken(), "there must be names with values here, not "+kindOf(node), "")
		return nil
	}
	entries := make([]entry, 0, len(values))
	for _, v := range values {
		at := v.Key.GetToken()
		entries = append(entries, entry{at.Value, at, v.Value}) // the parser has refused one that stands there twice
	}
	return entries
}

// text returns a value that is a string.
func (f *configFile) text(e entry) string {
	switch n := e.value.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return strings.TrimSuffix(n.Value.Value, "\n")
	}
	f.bad(e, "must be a text, not %s", kindOf(e.value))
	return ""
}

// scalar returns a value as its flag reads it.
func (f *configFile) scalar(node ast.Node, isBool bool) string {
	switch n := node.(type) {
	case *ast.StringNode:
		if !isBool {
			return n.Value
		}
	case *ast.BoolNode:
		if isBool {
			return strconv.FormatBool(n.Value)
		}
	case *ast.IntegerNode:
		if !isBool {
			return n.GetToken().Value
		}
	case *ast.LiteralNode:
		if !isBool {
			return strings.TrimSuffix(n.Value.Value, "\n")
		}
	}
	want := "a text"
	if isBool {
		want = "true or false"
	}
	_ = f.fail(node.GetToken(), "must be "+want+", not "+kindOf(node), "")
	return ""
}

// list returns a value that is one text or several.
func (f *configFile) list(node ast.Node) []string {
	sequence, ok := node.(*ast.SequenceNode)
	if !ok {
		return []string{f.scalar(node, false)}
	}
	list := make([]string, 0, len(sequence.Values))
	for _, one := range sequence.Values {
		list = append(list, f.scalar(one, false))
	}
	return list
}

// fail notes a mistake, unless there was one before.
func (f *configFile) fail(at *token.Token, what, hint string) error {
	if f.err == nil {
		f.err = &fileError{f.place(at), what, hint}
	}
	return f.err
}

func (f *configFile) place(at *token.Token) string {
	if at == nil || at.Position == nil {
		return f.name
	}
	return fmt.Sprintf("%s:%d:%d", f.name, at.Position.Line, at.Position.Column)
}

// bad notes a mistake in a value.
func (f *configFile) bad(e entry, format string, args ...any) {
	_ = f.fail(e.value.GetToken(), e.key+" "+fmt.Sprintf(format, args...), "") // it is kept in f
}

// unknown notes a name that there is not.
func (f *configFile) unknown(e entry, names []string) {
	hint := "there are " + strings.Join(names, ", ")
	if near := nearest(e.key, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	_ = f.fail(e.at, fmt.Sprintf("unknown setting %q", e.key), hint) // it is kept in f
}

// syntax makes a mistake of what the parser says.
func (f *configFile) syntax(err error) error {
	if y, ok := errors.AsType[yaml.Error](err); ok {
		return f.fail(y.GetToken(), "not valid YAML: "+y.GetMessage(), "")
	}
	return fmt.Errorf("%s: not valid YAML: %w", f.name, err)
}

// kindOf names what a value is.
func kindOf(node ast.Node) string {
	switch node.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.StringNode, *ast.LiteralNode:
		return "a text"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "names with values"
	default:
		return "an anchor, alias or tag"
	}
}

// nearest returns the name that somebody may have meant; empty: none.
func nearest(said string, names []string) string {
	said = strings.ReplaceAll(strings.ToLower(said), "_", "-")
	best, bestAt := "", max(1, len(said)/3)
	for _, name := range names {
		if d := distance(said, strings.ReplaceAll(name, "_", "-")); d <= bestAt {
			best, bestAt = name, d-1
		}
	}
	return best
}

// distance counts the letters to change, add or take away to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, before+1, row[j]+1)
		}
	}
	return row[len(b)]
}
