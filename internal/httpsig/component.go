package httpsig

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dunglas/httpsfv"
)

// Component names one thing that a signature covers: a field, in lower case, or a derived component, whose name begins
// with @. The parameters are those of RFC 9421.
type Component struct {
	Name      string
	SF        bool   // ;sf: the strict serialisation of a structured field whose type is known
	Key       string // ;key: one member of a dictionary field; empty: the whole field
	ByteSeq   bool   // ;bs: each field line as a byte sequence
	QueryName string // ;name: the parameter that @query-param means, percent-encoded
	Trailer   bool   // ;tr: a field of the trailer
	Request   bool   // ;req: of the request that the response answers
}

func (c *Component) derived() bool { return strings.HasPrefix(c.Name, "@") }

// check refuses components that are unknown or contradict themselves.
func (c *Component) check() error {
	if !c.derived() {
		switch {
		case !isToken(c.Name) || c.Name != strings.ToLower(c.Name):
			return errors.New("it is not the name of a field in lower case")
		case c.QueryName != "":
			return errors.New("a field takes no name")
		case c.ByteSeq && (c.SF || c.Key != ""):
			return errors.New("bs goes with neither sf nor key")
		}
		return nil
	}
	switch c.Name {
	case "@method", "@target-uri", "@authority", "@scheme", "@request-target", "@path", "@query", "@query-param":
	case "@status":
		if c.Request {
			return errors.New("a request has no status")
		}
	default:
		return errors.New("unknown component")
	}
	switch {
	case c.SF || c.ByteSeq || c.Trailer || c.Key != "":
		return errors.New("it is not a field")
	case (c.Name == "@query-param") != (c.QueryName != ""):
		return errors.New("a name goes with @query-param and only with it")
	}
	return nil
}

// set takes a parameter as it was parsed; false if it is unknown or its value is not of its type.
func (c *Component) set(param string, v any) bool {
	switch param {
	case "sf":
		c.SF = v == true
		return c.SF
	case "bs":
		c.ByteSeq = v == true
		return c.ByteSeq
	case "tr":
		c.Trailer = v == true
		return c.Trailer
	case "req":
		c.Request = v == true
		return c.Request
	case "key":
		c.Key, _ = v.(string)
		return c.Key != ""
	case "name":
		c.QueryName, _ = v.(string)
		return c.QueryName != ""
	}
	return false
}

// item returns the component as it is written.
func (c *Component) item() httpsfv.Item {
	item := httpsfv.NewItem(c.Name)
	for _, flag := range []struct {
		name string
		on   bool
	}{{"sf", c.SF}, {"bs", c.ByteSeq}, {"tr", c.Trailer}} {
		if flag.on {
			item.Params.Add(flag.name, true)
		}
	}
	if c.Key != "" {
		item.Params.Add("key", c.Key)
	}
	if c.QueryName != "" {
		item.Params.Add("name", c.QueryName)
	}
	if c.Request {
		item.Params.Add("req", true)
	}
	return item
}

// covered is a component with its identifier in the base. Parameters keep the order in which they were sent.
type covered struct {
	Component
	id string
}

// readItems reads the components of a signature and refuses one that occurs twice, in whatever order its parameters
// are.
func readItems(items []httpsfv.Item) ([]covered, error) {
	if len(items) > MaxComponents {
		return nil, fmt.Errorf("it covers more than %d components", MaxComponents)
	}
	list := make([]covered, 0, len(items))
	seen := make(map[Component]bool, len(items))
	for _, item := range items {
		id, err := httpsfv.Marshal(item)
		if err != nil {
			return nil, fmt.Errorf("writing a component: %w", err)
		}
		c, err := readItem(item)
		if err == nil && seen[c] {
			err = errors.New("it occurs twice")
		}
		if err != nil {
			return nil, fmt.Errorf("component %s: %w", id, err)
		}
		seen[c] = true
		list = append(list, covered{c, id})
	}
	return list, nil
}

func readItem(item httpsfv.Item) (Component, error) {
	name, ok := item.Value.(string)
	if !ok {
		return Component{}, errors.New("its name is not a string")
	}
	c := Component{Name: name}
	for _, param := range item.Params.Names() {
		if v, _ := item.Params.Get(param); !c.set(param, v) {
			return c, fmt.Errorf("parameter %s is unknown or not of its type", param)
		}
	}
	return c, c.check()
}
