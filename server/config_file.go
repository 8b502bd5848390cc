package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
	"github.com/spf13/pflag"

	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/support"
)

// maxConfigFile limits the size of a configuration file in bytes.
const maxConfigFile = 1 << 20

// ErrConfigFile is returned if the configuration file cannot be read at all.
var ErrConfigFile = errors.New("reading the configuration")

// fileError is a mistake in a configuration file.
type fileError struct {
	name string
	at   *token.Token
	what string
	hint string
}

func (e *fileError) Error() string { return e.place() + ": " + e.what }

// Hint returns the hint, or "".
func (e *fileError) Hint() string { return e.hint }

// place returns FILE:LINE:COLUMN.
func (e *fileError) place() string {
	if e.at == nil || e.at.Position == nil {
		return e.name
	}
	return fmt.Sprintf("%s:%d:%d", e.name, e.at.Position.Line, e.at.Position.Column)
}

// mistake returns an error at a place in a file; readFile adds the file's name.
func mistake(at *token.Token, hint, format string, args ...any) error {
	return &fileError{at: at, what: fmt.Sprintf(format, args...), hint: hint}
}

// member is a key of a mapping with its value.
type member struct {
	key   string
	at    *token.Token // of the key
	value ast.Node
}

// bad returns an error about the value of a member.
func (m member) bad(format string, args ...any) error {
	return mistake(m.value.GetToken(), "", m.key+" "+format, args...)
}

// notInFile are the flags that make no sense in a file, and upstream, which is under upstreams there.
var notInFile = []string{"config", "check", "help", "address-file", "upstream"}

// structured are the members of the file that have more structure than a flag.
var structured = []string{"upstreams", "retention", "strategies", "checkers", "mappings", "webhooks", "tenants"}

// readFile sets what neither flags nor variables have set. It stops at the first mistake.
func (c *Config) readFile(flags *pflag.FlagSet) error {
	if c.File == "" {
		return nil
	}
	data, err := os.ReadFile(c.File)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfigFile, err)
	}
	if len(data) > maxConfigFile {
		return Usagef("is this a configuration file?", "%s: it has more than %d bytes", c.File, maxConfigFile)
	}
	var root ast.Node
	err = func() error {
		tokens := lexer.Tokenize(string(data))
		if err := shallow(tokens); err != nil {
			return err
		}
		parsed, err := parser.Parse(tokens, 0)
		if err != nil {
			return err
		}
		if len(parsed.Docs) > 1 && parsed.Docs[1].Body != nil {
			return mistake(
				parsed.Docs[1].Body.GetToken(), "use only one YAML document", "there is a second document",
			)
		}
		if len(parsed.Docs) == 0 || parsed.Docs[0].Body == nil {
			return nil
		}
		root = parsed.Docs[0].Body
		return c.readMembers(root, flags)
	}()
	var place *fileError
	var inYAML yaml.Error
	var unknown *yaml.UnknownFieldError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &place):
		place.name = c.File
		return place
	case errors.As(err, &unknown):
		key := unknown.Token.Value
		return &fileError{c.File, unknown.Token, unknownSetting(key), nameHint(key, siblings(root, unknown.Token))}
	case errors.As(err, &inYAML):
		return &fileError{c.File, inYAML.GetToken(), wrongKind(root, inYAML), ""}
	}
	return fmt.Errorf("%s: not valid YAML: %w", c.File, err)
}

// shallow returns an error if lists nest too deep: the parser's time and memory grow with the square of the depth.
func shallow(tokens token.Tokens) error {
	const deepest = 100
	flow, items, line := 0, 0, 0 // the open brackets, and the items that begin on the line
	for _, t := range tokens {
		if t.Position.Line != line {
			items, line = 0, t.Position.Line
		}
		switch t.Type { //nolint:exhaustive // the others do not nest
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType:
			items++
		}
		if max(flow, items) > deepest {
			return mistake(t, "", "it nests more than %d deep", deepest)
		}
	}
	return nil
}

func (c *Config) readMembers(root ast.Node, flags *pflag.FlagSet) error {
	members, err := mapping(root)
	if err != nil {
		return err
	}
	for _, m := range members {
		switch m.key {
		case "upstreams":
			err = c.readUpstreams(m)
		case "retention":
			err = c.readRetention(m)
		case "strategies":
			err = c.readStrategies(m)
		case "checkers":
			err = c.readCheckers(m)
		case "mappings":
			err = c.readMappings(m)
		case "webhooks":
			err = decode(m.value, &c.Webhooks)
		case "tenants":
			err = decode(m.value, &c.Tenants)
		case "chat":
			var list oneOrMore[ChatModel]
			if err = decode(m.value, &list); err == nil && !flags.Changed("chat") {
				c.Chat = list
			}
		default:
			names := slices.Clone(structured)
			flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
			names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(notInFile, name) })
			err = setFlag(flags, m, names)
		}
		if err != nil {
			return err
		}
	}
	return c.mergeRetention(members)
}

// setFlag sets the flag of a member unless it is already set. names are the valid names.
func setFlag(flags *pflag.FlagSet, m member, names []string) error {
	f := flags.Lookup(m.key)
	if f == nil || !slices.Contains(names, m.key) {
		return mistake(m.at, nameHint(m.key, names), "%s", unknownSetting(m.key))
	}
	nodes := []ast.Node{m.value}
	switch f.Value.(type) {
	case *Words, *Networks:
		nodes = valuesOf(m.value)
	}
	for _, node := range nodes {
		text, err := scalar(node, f.Value.Type() == "bool")
		if err != nil {
			return err
		}
		if f.Changed {
			continue
		}
		if err := f.Value.Set(text); err != nil {
			if f.Value.Type() == "duration" {
				err = errDuration
			}
			return m.bad("%v", err)
		}
	}
	return nil
}

var errDuration = errors.New("must be a duration such as 250ms, 30s or 1h")

// readUpstreams reads the member upstreams.
func (c *Config) readUpstreams(m member) error {
	entries, err := mapping(m.value)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := checkUpstreamName(e.key); err != nil {
			return mistake(e.at, "", "%v", err)
		}
	}
	if err := decode(m.value, &c.Upstreams); err != nil {
		return err
	}
	for name, u := range c.Upstreams {
		if u == nil {
			c.Upstreams[name] = &Upstream{}
		}
	}
	return nil
}

// readRetention reads the member retention: default, copies, manifests and providers.
func (c *Config) readRetention(m member) error {
	var ages Ages
	if err := decode(m.value, &ages); err != nil {
		return err
	}
	r := &c.Retention
	for name, to := range map[string]*Age{"default": &r.Default, "copies": &r.Copies, "manifests": &r.Manifests} {
		if a, said := ages[name]; said {
			*to = a
		}
		delete(ages, name)
	}
	r.ByProvider = ages
	return nil
}

// mergeRetention adds the retention of upstreams to that of their providers. It may be repeated, but not contradicted.
func (c *Config) mergeRetention(root []member) error {
	type said struct {
		provider string
		age      Age
		at       *token.Token // of the value
	}
	var all []said
	for _, m := range root {
		if m.key != "upstreams" && m.key != "retention" {
			continue
		}
		entries, err := mapping(m.value)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if m.key == "retention" {
				if a, ok := c.Retention.ByProvider[e.key]; ok {
					all = append(all, said{e.key, a, e.value.GetToken()})
				}
				continue
			}
			u := c.Upstreams[e.key]
			if u.Retention == nil {
				continue
			}
			u.Provider = c.upstreamProvider(e.key, u.Provider)
			within, err := mapping(e.value)
			if err != nil {
				return err
			}
			at := within[slices.IndexFunc(within, func(m member) bool { return m.key == "retention" })]
			if u.Provider == "" {
				return mistake(
					at.at, "add provider: NAME to the upstream, or set retention: {NAME: "+u.Retention.String()+
						"} at the top of the file",
					"retention is set by provider, but upstream %s names none", e.key,
				)
			}
			all = append(all, said{u.Provider, *u.Retention, at.value.GetToken()})
		}
	}
	first := map[string]said{}
	for _, s := range all {
		before, twice := first[s.provider]
		if twice && before.age != s.age {
			return mistake(
				s.at, "all answers of a provider have the same retention, whatever the upstream",
				"retention of provider %s is %s here and %s at %s", s.provider, &s.age, &before.age,
				(&fileError{name: c.File, at: before.at}).place(),
			)
		}
		if !twice {
			first[s.provider] = s
		}
		c.Retention.ByProvider[s.provider] = s.age
	}
	return nil
}

// readStrategies reads the member strategies.
func (c *Config) readStrategies(m member) error {
	entries, err := mapping(m.value)
	if err != nil {
		return err
	}
	for _, e := range entries {
		in := struct {
			Version     int     `yaml:"version"`
			PostHoc     bool    `yaml:"post_hoc"`
			Threshold   float64 `yaml:"threshold"`
			PerSentence int     `yaml:"per_sentence"`
			Scorer      string  `yaml:"scorer"`
			Checker     string  `yaml:"checker"`
		}{
			Version: 1, PostHoc: true, Threshold: support.Balanced,
			Scorer: experiment.ScorerBM25, Checker: experiment.CheckerLexical,
		}
		if err := decode(e.value, &in); err != nil {
			return err
		}
		s := experiment.Strategy{
			Name: e.key, Version: in.Version, PostHoc: in.PostHoc, Threshold: in.Threshold,
			PerSentence: in.PerSentence, Scorer: in.Scorer, Checker: in.Checker,
		}
		if err := s.Check(); err != nil {
			return mistake(e.at, "", "%v", err)
		}
		if known, err := experiment.Find(c.AllStrategies(), s.ID()); err == nil && known != s {
			return mistake(
				e.at, "give it another version or name", "%s already exists with other settings", s.ID(),
			)
		}
		c.Strategies = append(c.Strategies, s)
	}
	return nil
}

// readCheckers reads the member checkers.
func (c *Config) readCheckers(m member) error {
	entries, err := mapping(m.value)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.key == experiment.CheckerLexical {
			return mistake(e.at, "give it another name", "%s is the built-in one", e.key)
		}
		checker := newChecker()
		if err := decode(e.value, checker); err != nil {
			return err
		}
		c.Checkers[e.key] = checker
	}
	return nil
}

// decode reads a node strictly: unknown members are errors.
func decode(node ast.Node, to any) error { return yaml.NodeToValue(node, to, yaml.Strict()) }

// mapping returns the members of a mapping, and none for an empty value.
func mapping(node ast.Node) ([]member, error) {
	var values []*ast.MappingValueNode
	switch n := node.(type) {
	case *ast.NullNode:
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		return nil, mistake(node.GetToken(), "", "there must be names with values here, not %s", kindOf(node))
	}
	members := make([]member, len(values))
	for i, v := range values {
		at := v.Key.GetToken()
		members[i] = member{at.Value, at, v.Value} // the parser refuses duplicate names
	}
	return members, nil
}

// scalar returns a value as the text for its flag.
func scalar(node ast.Node, isBool bool) (string, error) {
	text, isText, want := "", false, "a text"
	if isBool {
		want = "true or false"
	}
	switch n := node.(type) {
	case *ast.BoolNode:
		if isBool {
			return strconv.FormatBool(n.Value), nil
		}
	case *ast.StringNode:
		text, isText = n.Value, true
	case *ast.LiteralNode:
		text, isText = strings.TrimSuffix(n.Value.Value, "\n"), true
	case *ast.IntegerNode, *ast.FloatNode:
		text, isText = n.GetToken().Value, true
	}
	if isText && !isBool {
		return text, nil
	}
	return "", mistake(node.GetToken(), "", "must be %s, not %s", want, kindOf(node))
}

// setFromNode sets a value from its text.
func setFromNode(node ast.Node, set func(text string) error) error {
	text, err := scalar(node, false)
	if err != nil {
		return err
	}
	if err := set(text); err != nil {
		path := node.GetPath()
		return mistake(node.GetToken(), "", "%s %v", path[strings.LastIndexByte(path, '.')+1:], err)
	}
	return nil
}

// valuesOf returns the elements of a list; any other value is its only element.
func valuesOf(node ast.Node) []ast.Node {
	if list, ok := node.(*ast.SequenceNode); ok {
		return list.Values
	}
	return []ast.Node{node}
}

// oneOrMore is a list that may also be written as its only element.
type oneOrMore[T any] []T

// UnmarshalYAML reads one element or a list.
func (l *oneOrMore[T]) UnmarshalYAML(node ast.Node) error {
	for _, n := range valuesOf(node) {
		var one T
		if err := decode(n, &one); err != nil {
			return err
		}
		*l = append(*l, one)
	}
	return nil
}

// toolList is a list of tools in the provider's own format: mappings, which are converted to JSON.
type toolList []json.RawMessage

// UnmarshalYAML reads one tool or a list.
func (l *toolList) UnmarshalYAML(node ast.Node) error {
	for _, n := range valuesOf(node) {
		var tool map[string]any
		if err := yaml.NodeToValue(n, &tool); err != nil {
			return mistake(
				n.GetToken(), "", "tools must be in the provider's format, such as {google_search: {}}, not %s",
				kindOf(n),
			)
		}
		data, err := json.Marshal(tool)
		if err != nil {
			return mistake(n.GetToken(), "", "tools cannot be JSON: %v", err)
		}
		*l = append(*l, data)
	}
	return nil
}

// messageCount is how many messages of a conversation are sent along: at least 1, or -1 for all.
type messageCount int

// UnmarshalYAML reads a number or "all".
func (m *messageCount) UnmarshalYAML(node ast.Node) error {
	return setFromNode(node, func(text string) error {
		n, err := strconv.Atoi(text)
		if text == "all" {
			n, err = -1, nil
		} else if err != nil || n < 1 {
			return errors.New("must be a number of messages, at least 1, or all")
		}
		*m = messageCount(n)
		return err
	})
}

// timeout is a duration above zero.
type timeout time.Duration

// UnmarshalYAML reads a duration.
func (t *timeout) UnmarshalYAML(node ast.Node) error {
	return setFromNode(node, func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return errDuration
		}
		*t = timeout(d)
		return nil
	})
}

// wrongKind rewords an error of the YAML library without Go terms, and names the setting with the wrong value.
func wrongKind(root ast.Node, err yaml.Error) string {
	var kind *yaml.TypeError
	if !errors.As(err, &kind) {
		if _, ok := errors.AsType[*yaml.UnexpectedNodeTypeError](err); ok {
			return "there must be " + strings.NewReplacer(
				"sequence was used where mapping is expected", "names with values here, not a list",
				"string was used where mapping is expected", "names with values here, not a text",
			).Replace(err.GetMessage())
		}
		return "not valid YAML: " + err.GetMessage()
	}
	return settingAt(root, kind.Token) + "must be " + kindName(kind.DstType) + ", not " + kindName(kind.SrcType)
}

// settingAt returns the name of the setting whose value is at a token, and a space; "" if none is, as in a list.
func settingAt(root ast.Node, value *token.Token) (name string) {
	if root == nil {
		return ""
	}
	ast.Walk(visit(func(n ast.Node) {
		if v, ok := n.(*ast.MappingValueNode); ok && v.Value.GetToken() == value {
			name = v.Key.GetToken().Value + " "
		}
	}), root)
	return name
}

// kindName returns what a value of a Go type is called in a file.
func kindName(t reflect.Type) string {
	switch t.Kind() { //nolint:exhaustive // the others do not occur in a configuration
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "names with values"
	}
	return "a text"
}

// kindOf returns what a value is called.
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

func unknownSetting(key string) string { return fmt.Sprintf("unknown setting %q", key) }

// siblings returns the names valid in the place of a key: those of the struct that its mapping is read into.
func siblings(root ast.Node, key *token.Token) []string {
	path := ""
	ast.Walk(visit(func(n ast.Node) {
		if v, ok := n.(*ast.MappingValueNode); ok && v.Key.GetToken() == key {
			path = v.GetPath()
		}
	}), root)
	var in any
	switch {
	case strings.Contains(path, ".policies"):
		in = Policies{}
	case strings.HasPrefix(path, "$.tenants"):
		in = Tenant{}
	case strings.Contains(path, "backfill"):
		in = Backfill{}
	case strings.HasPrefix(path, "$.upstreams"):
		in = Upstream{}
	case strings.HasPrefix(path, "$.mappings"):
		in = Mapping{}
	case strings.HasPrefix(path, "$.webhooks"):
		in = Webhook{}
	case strings.HasPrefix(path, "$.chat"):
		in = ChatModel{}
	case strings.HasPrefix(path, "$.checkers"):
		in = Checker{}
	case strings.HasPrefix(path, "$.strategies"):
		return []string{"version", "post_hoc", "threshold", "per_sentence", "scorer", "checker"}
	default:
		return nil
	}
	var names []string
	for _, field := range reflect.VisibleFields(reflect.TypeOf(in)) {
		if name := field.Tag.Get("yaml"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// visit is an ast.Visitor that sees every node.
type visit func(ast.Node)

func (v visit) Visit(n ast.Node) ast.Visitor {
	v(n)
	return v
}

// nameHint suggests a similar name, or else lists all names.
func nameHint(said string, names []string) string {
	said = strings.ReplaceAll(strings.ToLower(said), "_", "-")
	best, bestAt := "", max(1, len(said)/3)
	for _, name := range names {
		if d := distance(said, strings.ReplaceAll(name, "_", "-")); d <= bestAt {
			best, bestAt = name, d-1
		}
	}
	if best != "" {
		return "did you mean " + best + "?"
	}
	return "valid names are " + strings.Join(names, ", ")
}

// distance returns the number of letters to change, add or remove to turn a into b.
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
