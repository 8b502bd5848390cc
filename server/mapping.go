package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/call"
)

// Mapping describes the responses of a provider of one's own: see [ibid.Mapping].
type Mapping struct {
	Path    route    `yaml:"path"`   // the end of the path of calls that return them; may be empty
	Member  jsonPath `yaml:"member"` // the others are paths in a response
	Text    jsonPath `yaml:"text"`
	Delta   jsonPath `yaml:"delta"`
	List    jsonPath `yaml:"list"`
	Title   jsonPath `yaml:"title"`
	URL     jsonPath `yaml:"url"`
	ID      jsonPath `yaml:"id"`
	Passage jsonPath `yaml:"passage"`
	Mark    jsonPath `yaml:"mark"`
}

// jsonPath is a path in a response.
type jsonPath string

// UnmarshalYAML reads a path.
func (p *jsonPath) UnmarshalYAML(node ast.Node) error {
	return setFromNode(node, func(text string) error {
		*p = jsonPath(text)
		return ibid.CheckPath(text)
	})
}

// route is the end of a URL's path.
type route string

// UnmarshalYAML reads the end of a URL's path.
func (r *route) UnmarshalYAML(node ast.Node) error {
	return setFromNode(node, func(text string) error {
		if *r = route(text); !strings.HasPrefix(text, "/") || len(text) < 2 || strings.ContainsAny(text, "?#%*{} ") {
			return errors.New("must be the end of a URL's path, such as /v1/ask")
		}
		return nil
	})
}

// readMappings reads the member mappings, in its order.
func (c *Config) readMappings(m member) error {
	entries, err := mapping(m.value)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := checkName(e.key); err != nil {
			return mistake(e.at, "", "%v", err)
		}
		if slices.Contains(call.ProviderNames(), e.key) {
			return mistake(e.at, "give it another name", "%s is a provider that ibid knows", e.key)
		}
		var in Mapping
		if err := decode(e.value, &in); err != nil {
			return err
		}
		one := ibid.Mapping{
			Provider: e.key, Member: string(in.Member), Text: string(in.Text), Delta: string(in.Delta),
			List: string(in.List), Title: string(in.Title), URL: string(in.URL), ID: string(in.ID),
			Passage: string(in.Passage), Mark: string(in.Mark),
		}
		if err := one.Check(); err != nil {
			return mistake(
				e.at, "a mapping needs the paths of the answer's text and of the list of its sources", "%v", err,
			)
		}
		c.Mappings = append(c.Mappings, one)
		if in.Path != "" {
			c.paths[e.key] = string(in.Path)
		}
	}
	return nil
}

// maps reports whether there is a mapping of a provider.
func (c *Config) maps(provider string) bool {
	return slices.ContainsFunc(c.Mappings, func(m ibid.Mapping) bool { return m.Provider == provider })
}

// ReadMappings returns the mappings of a configuration file, which is only read for these.
func ReadMappings(file string) ([]ibid.Mapping, error) {
	c, all := Defaults(), pflag.NewFlagSet("", pflag.ContinueOnError)
	c.AddFlags(all)
	all.AddFlagSet(c.Settings())
	c.File = file
	if err := c.readFile(all); err != nil {
		return nil, err
	}
	return c.Mappings, nil
}

// mappings reports each mapping, and a warning if no response can be its.
func (k *check) mappings() {
	c := k.config
	for i := range c.Mappings {
		m := &c.Mappings[i]
		how, err := "", error(nil)
		for _, name := range c.upstreamNames() {
			if c.Upstreams[name].Provider == m.Provider {
				how += ", of upstream " + name
			}
		}
		switch {
		case m.Member != "":
			how += ", with " + m.Member
		case how == "":
			how = ", with both"
		}
		if p := c.paths[m.Provider]; p != "" {
			if how += ", at " + p; !strings.Contains(how, "upstream") {
				err = &warning{fmt.Errorf("no upstream has the provider %s, so its path is not captured", m.Provider)}
			}
		}
		k.line("mapping", fmt.Sprintf("%s\ttext %s, list %s%s", m.Provider, m.Text, m.List, how), err)
	}
}
