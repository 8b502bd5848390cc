package trail_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/trail"
)

// provKinds lists the elements (nil) and relations of the PROV-JSON submission, the relations with those of their
// attributes that name something, and the kind of what they name. The first two are required, which is stricter than
// the submission, where all but one may be unknown.
var provKinds = map[string][][2]string{
	"entity": nil, "activity": nil, "agent": nil,
	"wasGeneratedBy":    {{"prov:entity", "entity"}, {"prov:activity", "activity"}},
	"used":              {{"prov:activity", "activity"}, {"prov:entity", "entity"}},
	"wasInformedBy":     {{"prov:informed", "activity"}, {"prov:informant", "activity"}},
	"wasDerivedFrom":    {{"prov:generatedEntity", "entity"}, {"prov:usedEntity", "entity"}, {"prov:activity", "activity"}},
	"wasAttributedTo":   {{"prov:entity", "entity"}, {"prov:agent", "agent"}},
	"wasAssociatedWith": {{"prov:activity", "activity"}, {"prov:agent", "agent"}},
	"hadMember":         {{"prov:collection", "entity"}, {"prov:entity", "entity"}},
}

var provName = regexp.MustCompile(`^([A-Za-z][\w-]*):([\w-]+)$`)

// checkPROV checks a document strictly against the W3C's member submission PROV-JSON: its structure, literals, times
// and namespaces, and that everything that is named exists, as PROV-CONSTRAINTS requires for its types.
func checkPROV(b []byte) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	var doc map[string]map[string]json.RawMessage
	if err := json.Unmarshal(b, &doc); err != nil {
		return []string{err.Error()}
	}
	prefixes := map[string]bool{}
	for prefix, raw := range doc["prefix"] {
		var uri string
		if err := json.Unmarshal(raw, &uri); err != nil {
			bad("prefix %s: %v", prefix, err)
		}
		if u, err := url.Parse(uri); err != nil || !u.IsAbs() {
			bad("prefix %s: %q is not an absolute URI", prefix, uri)
		}
		prefixes[prefix] = true
	}
	name := func(where, s string) {
		if m := provName.FindStringSubmatch(s); m == nil || !prefixes[m[1]] {
			bad("%s: %q is not a name of a declared namespace", where, s)
		}
	}
	for kind, records := range doc {
		if kind == "prefix" {
			continue
		}
		named, known := provKinds[kind]
		if !known {
			bad("there is no %s in PROV-JSON", kind)
		}
		for id, raw := range records {
			where := kind + " " + id
			if named == nil {
				name(where, id)
			} else if !strings.HasPrefix(id, "_:") {
				name(where, id)
			}
			var attributes map[string]any
			if err := json.Unmarshal(raw, &attributes); err != nil {
				bad("%s: %v", where, err)
			}
			for i, n := range named {
				value, given := attributes[n[0]]
				if text, _ := value.(string); given && doc[n[1]][text] == nil {
					bad("%s: %s is %v, which is not an %s", where, n[0], value, n[1])
				} else if !given && i < 2 {
					bad("%s: %s is missing", where, n[0])
				}
				delete(attributes, n[0])
			}
			checkAttributes(kind, where, attributes, name, bad)
		}
	}
	slices.Sort(problems)
	return problems
}

func checkAttributes(kind, where string, attributes map[string]any, name func(where, s string), bad func(string, ...any)) {
	for key, value := range attributes {
		name(where, key)
		allowed := []string{"prov:label", "prov:type", "prov:value", "prov:location"}
		if kind == "activity" {
			allowed = append(allowed, "prov:startTime", "prov:endTime")
		}
		if strings.HasPrefix(key, "prov:") && !slices.Contains(allowed, key) {
			bad("%s: unknown attribute %s", where, key)
		}
		switch value := value.(type) {
		case string:
			if _, err := time.Parse(time.RFC3339Nano, value); err != nil && strings.HasSuffix(key, "Time") {
				bad("%s: %s: %v", where, key, err)
			}
		case bool, float64:
		case map[string]any: // a typed literal, here always a name
			text, _ := value["$"].(string)
			if name(where, text); value["type"] != "xsd:QName" || len(value) != 2 {
				bad("%s: %s is the literal %v", where, key, value)
			}
		default:
			bad("%s: %s is %T", where, key, value)
		}
	}
}

// rich reads a trail with one of everything.
func rich(t *testing.T) *trail.Trail {
	t.Helper()
	b := testenv.Must(os.ReadFile("testdata/rich.json"))(t)
	return testenv.Must(trail.Read(b))(t)
}

func TestPROV(t *testing.T) {
	b := testenv.Must(rich(t).PROV(nil))(t)
	if problems := checkPROV(b); len(problems) > 0 {
		t.Errorf("%s\nin %s", strings.Join(problems, "\n"), b)
	}
	for _, secret := range []string{"When was", "1820", "Rain", "looked", "Only this", "inner", "no hands", `"q"`, "id:x"} {
		if strings.Contains(string(b), secret) {
			t.Errorf("%q got out in %s", secret, b)
		}
	}
	got := relations(t, b)
	for _, row := range testenv.Cases(t, "testdata/prov.txt", 2) {
		if slices.Contains(got, row[1]) != (row[0] == "says") {
			t.Errorf("want that it %s: %s", row[0], row[1])
		}
	}
}

// relations lists the relations, with their names in the order of provKinds.
func relations(t *testing.T, b []byte) []string {
	t.Helper()
	var members map[string]json.RawMessage
	testenv.OK(t, json.Unmarshal(b, &members))
	delete(members, "prefix")
	doc := map[string]map[string]map[string]any{}
	for kind, raw := range members {
		var records map[string]map[string]any
		testenv.OK(t, json.Unmarshal(raw, &records))
		doc[kind] = records
	}
	var list []string
	for kind, records := range doc {
		for _, r := range records {
			line := kind
			for _, named := range provKinds[kind] {
				if text, ok := r[named[0]].(string); ok {
					line += " " + text
				}
			}
			list = append(list, line)
		}
	}
	return list
}

// With the option Content, texts are included. Numbers that JSON cannot represent, and repeated step numbers, do no
// harm.
func TestPROVContent(t *testing.T) {
	run := rich(t)
	run.ID = "a b/c#é"
	b, err := run.PROV(&trail.PROVOptions{Content: true})
	testenv.OK(t, err)
	for _, want := range []string{"When was the mill built?", "no hands", "Built in 1820.", `{\"q\":\"mill\",\"n\":[1,2.5]}`, "urn:ibid:run:a%20b%2Fc%23%C3%A9:"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%q is missing in %s", want, b)
		}
	}
	if problems := checkPROV(b); len(problems) > 0 {
		t.Error(problems)
	}
	odd := &trail.Trail{Steps: []trail.Step{
		{Number: 1, Confidence: new(nan()), Sources: []trail.Source{{Relevance: new(nan()), Used: true}, {Used: true, Title: "\xff"}}},
		{Number: 1, After: []int{1, 9}},
		{Number: -1},
		{},
	}}
	if b, err = odd.PROV(&trail.PROVOptions{Content: true}); err != nil {
		t.Fatal(err)
	}
	if problems := checkPROV(b); len(problems) > 0 {
		t.Errorf("%v in %s", problems, b)
	}
	empty := testenv.Must(new(trail.Trail).PROV(nil))(t)
	testenv.Equal(t, "an empty trail", []string{"activity", "agent", "wasAssociatedWith run:run run:agent"}, sorted(relations(t, empty)))
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

func nan() float64 {
	var zero float64
	return zero / zero
}

// The checker finds errors.
func TestCheckPROV(t *testing.T) {
	for _, row := range testenv.Cases(t, "testdata/prov_bad.txt", 2) {
		name, body := row[0], row[1]
		if len(checkPROV([]byte(body))) == 0 {
			t.Errorf("%s: nothing is wrong with %s", name, body)
		}
	}
}
