package trail

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// PROVOptions configures [Trail.PROV]. Nil means the zero value.
type PROVOptions struct {
	// Content includes texts: the question, answers, inputs, outputs, errors and excerpts. Without it, there are only
	// their SHA-256 digests, by which those who have a text can check it, and that a step failed.
	Content bool
	// Linked means that [Trail.Link] was called, so that an answer that no step fed derives from no step.
	Linked bool
}

// PROV returns the run as W3C PROV-JSON (Member Submission of 24 April 2013), in one line.
//
// The run and its steps are activities, associated with the agent. The question, each step's input and output, the
// answer and each document are entities. A step used the documents that it worked with or cited, with the relevance and
// rank on that relation; the results of its searches are members of a collection. A step's output derives from what the
// step used and from the outputs of the steps that it builds on, which informed it; the answer derives from the outputs
// of the steps that feed it or, if the run was not linked, of those that no other step builds on. All names are in the
// namespace urn:ibid:run:, followed by the run's id. The steps of nested runs are beside their step, which they
// informed.
func (t *Trail) PROV(o *PROVOptions) ([]byte, error) {
	p := &provWriter{doc: map[string]map[string]provRecord{}, documents: map[string]string{}}
	if o != nil {
		p.options = *o
	}
	p.run(t)
	doc := map[string]any{"prefix": map[string]string{
		"prov": "http://www.w3.org/ns/prov#",
		"xsd":  "http://www.w3.org/2001/XMLSchema#",
		"ibid": "https://github.com/ibidhq/ibid/blob/main/docs/trail.md#",
		"run":  "urn:ibid:run:" + url.PathEscape(t.ID) + ":",
	}}
	for kind, records := range p.doc {
		doc[kind] = records
	}
	b, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("write PROV-JSON: %w", err)
	}
	return b, nil
}

// provRecord has the attributes of an element or a relation.
type provRecord map[string]any

// provWriter collects elements by name and relations by number, each under its kind.
type provWriter struct {
	options   PROVOptions
	doc       map[string]map[string]provRecord
	documents map[string]string // names of entities by document
	relations int
}

const (
	provRun    = "run:run"
	provAgent  = "run:agent"
	provAnswer = "run:answer"
	provStep   = "run:step-"
)

// add adds an empty record.
func (p *provWriter) add(kind, name string) provRecord {
	if p.doc[kind] == nil {
		p.doc[kind] = map[string]provRecord{}
	}
	r := provRecord{}
	p.doc[kind][name] = r
	return r
}

// element adds an element with a type, which is a qualified name.
func (p *provWriter) element(kind, name, typeName string) provRecord {
	r := p.add(kind, name)
	r["prov:type"] = map[string]any{"$": typeName, "type": "xsd:QName"}
	return r
}

// provRelations has, for each relation, the attributes that name what it relates.
var provRelations = map[string][]string{
	"hadMember":         {"prov:collection", "prov:entity"},
	"used":              {"prov:activity", "prov:entity"},
	"wasAssociatedWith": {"prov:activity", "prov:agent"},
	"wasAttributedTo":   {"prov:entity", "prov:agent"},
	"wasDerivedFrom":    {"prov:generatedEntity", "prov:usedEntity", "prov:activity"},
	"wasGeneratedBy":    {"prov:entity", "prov:activity"},
	"wasInformedBy":     {"prov:informed", "prov:informant"},
}

// relate adds a relation with a blank node as its name.
func (p *provWriter) relate(kind string, names ...string) provRecord {
	p.relations++
	r := p.add(kind, "_:r"+strconv.Itoa(p.relations))
	for i, name := range names {
		r[provRelations[kind][i]] = name
	}
	return r
}

// set sets an attribute, unless its value is empty.
func (r provRecord) set(name string, value any) {
	if value = known(value); value != nil {
		r[name] = value
	}
}

// setText sets a text or, if texts are not to be written, its digest, which is sum if the text is not known.
func (p *provWriter) setText(r provRecord, text, sum string) {
	switch {
	case text == "":
		r.set("ibid:digest", sum)
	case p.options.Content:
		r.set("prov:value", strings.ToValidUTF8(text, "\ufffd"))
	default:
		r.set("ibid:digest", digest([]byte(text)))
	}
}

func (p *provWriter) run(t *Trail) {
	p.element("agent", provAgent, "prov:SoftwareAgent")["prov:label"] = cmp.Or(t.Agent, "agent")
	run := p.element("activity", provRun, "ibid:Run")
	run.set("prov:label", cmp.Or(t.ID, "run"))
	run.set("prov:startTime", t.Started)
	run.set("prov:endTime", t.Finished)
	run.set("ibid:strategy", t.Strategy)
	run.set("ibid:parentRun", t.Parent)
	p.relate("wasAssociatedWith", provRun, provAgent)
	if t.Question != "" {
		p.setText(p.element("entity", "run:question", "ibid:Question"), t.Question, "")
		p.relate("used", provRun, "run:question")
	}
	feeding := p.steps(t, "", 0)
	answer := t.Answer
	if answer == "" && t.Final != nil {
		answer = t.Final.Text
	}
	if answer == "" {
		return
	}
	p.setText(p.element("entity", provAnswer, "ibid:Answer"), answer, "")
	p.relate("wasGeneratedBy", provAnswer, provRun)
	p.relate("wasAttributedTo", provAnswer, provAgent)
	for _, step := range feeding {
		p.relate("wasDerivedFrom", provAnswer, step+"-output")
	}
}

// steps writes the steps of a run, with prefix in their names, and returns the names of those that feed the answer.
func (p *provWriter) steps(t *Trail, prefix string, depth int) []string {
	names := provNames(t, prefix)
	var fed, last []string
	builtOn := map[int]bool{}
	graph := t.Graph()
	for _, before := range graph {
		for _, b := range before {
			builtOn[b] = true
		}
	}
	for i := range t.Steps {
		s := &t.Steps[i]
		p.step(s, names[i])
		for _, b := range graph[i] {
			p.buildsOn(names[i], names[b])
		}
		if s.Nested != nil && depth < MaxNested {
			inner := strings.TrimPrefix(names[i], provStep) + "-"
			for _, end := range p.steps(s.Nested, inner, depth+1) {
				p.buildsOn(names[i], end)
			}
		}
		if len(s.Fed) > 0 {
			fed = append(fed, names[i])
		}
		if !builtOn[i] {
			last = append(last, names[i])
		}
	}
	if fed != nil || p.options.Linked && depth == 0 { // linking a run does not link nested ones
		return fed
	}
	return last
}

// provNames names steps by their numbers, and distinguishes steps that share one.
func provNames(t *Trail, prefix string) []string {
	names := make([]string, len(t.Steps))
	taken := map[int]bool{}
	for i := range t.Steps {
		number := t.Steps[i].Number
		if names[i] = provStep + prefix + strconv.Itoa(number); taken[number] {
			names[i] += "_" + strconv.Itoa(i)
		}
		taken[number] = true
	}
	return names
}

// buildsOn relates a step to one that it builds on.
func (p *provWriter) buildsOn(step, before string) {
	p.relate("wasInformedBy", step, before)
	p.relate("wasDerivedFrom", step+"-output", before+"-output", step)
}

// step writes one step with its input and output.
func (p *provWriter) step(s *Step, name string) {
	activity := p.element("activity", name, "ibid:Step")
	activity["ibid:number"] = s.Number
	activity.set("prov:label", s.Tool)
	activity.set("ibid:id", s.ID)
	activity.set("ibid:confidence", s.Confidence)
	if activity.set("prov:startTime", s.Started); !s.Started.IsZero() && s.Duration > 0 {
		activity.set("prov:endTime", s.Started.Add(s.Duration))
	}
	if s.Error != "" {
		activity["ibid:failed"] = true
		if p.options.Content {
			activity["ibid:error"] = strings.ToValidUTF8(s.Error, "\ufffd")
		}
	}
	p.relate("wasAssociatedWith", name, provAgent)
	if in := cmp.Or(string(s.Inputs), s.Question); in != "" || s.InputsDigest != "" {
		p.setText(p.element("entity", name+"-input", "ibid:Input"), in, s.InputsDigest)
		p.relate("used", name, name+"-input")
	}
	output := p.element("entity", name+"-output", "ibid:Output")
	p.setText(output, cmp.Or(string(s.Outputs), s.Answer), s.OutputsDigest)
	p.relate("wasGeneratedBy", name+"-output", name)
	p.relate("wasAttributedTo", name+"-output", provAgent)
	for i := range s.Sources {
		p.source(&s.Sources[i], name)
	}
}

// source writes how a step relates to a source.
func (p *provWriter) source(s *Source, step string) {
	document := p.document(s)
	if s.Retrieved {
		results := step + "-results"
		if p.doc["entity"][results] == nil {
			p.element("entity", results, "prov:Collection")
			p.relate("wasGeneratedBy", results, step)
		}
		p.relate("hadMember", results, document)
	}
	if !s.counts() {
		return
	}
	use := p.relate("used", step, document)
	use["ibid:cited"] = s.Cited
	if use.set("ibid:relevance", s.Relevance); use["ibid:relevance"] != nil {
		use.set("ibid:scoreOrigin", string(s.Origin))
	}
	use.set("ibid:overlap", s.Overlap)
	use.set("ibid:usage", s.Usage)
	if s.Rank > 0 {
		use["ibid:rank"] = s.Rank
	}
	if s.ChunkIndex != nil {
		use["ibid:chunk"] = *s.ChunkIndex
	}
	if text := s.text(); text != "" && p.options.Content {
		use["ibid:excerpt"] = strings.ToValidUTF8(cmp.Or(s.Excerpt, text), "\ufffd")
	} else if text != "" {
		use["ibid:digest"] = digest([]byte(text))
	}
	p.relate("wasDerivedFrom", step+"-output", document, step)
}

// document writes a document, once, and returns its name.
func (p *provWriter) document(s *Source) string {
	key := "id:" + s.DocumentID
	if s.DocumentID == "" {
		key = "key:" + cmp.Or(s.Key, s.URL, s.Title)
	}
	name, known := p.documents[key]
	if !known {
		name = "run:source-" + strconv.Itoa(len(p.documents)+1)
		p.documents[key] = name
		p.element("entity", name, "ibid:Source")
	}
	entity := p.doc["entity"][name]
	for _, attribute := range []struct{ name, value string }{
		{"ibid:document", s.DocumentID},
		{"prov:label", s.Title},
		{"prov:location", s.URL},
		{"ibid:version", s.Version},
		{"ibid:key", s.Key},
	} {
		if entity[attribute.name] == nil {
			entity.set(attribute.name, strings.ToValidUTF8(attribute.value, "\ufffd"))
		}
	}
	return name
}
