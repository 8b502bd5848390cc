package wire

import "github.com/ibidhq/ibid/internal/scan"

// reference reads Mistral's mark for what the text before it rests on: ids of the results of the request's tools.
func (p *chat) reference(part Part, v scan.Value) {
	if v.Cut() {
		return
	}
	ids := v.Get("reference_ids")
	c := &Cite{Part: part, Unit: Here, Covers: Point}
	for a := scan.Elements(ids); a.Next(); {
		id := a.Val.Text()
		if id == "" {
			p.issue(IssueWrongType, "reference_ids", a.Val)
			continue
		}
		s := p.toolResult(id)
		p.source(s)
		c.Refs = append(c.Refs, Ref{Source: s.Key})
	}
	if len(c.Refs) == 0 {
		p.issue(IssueSourceless, "reference", v)
		return
	}
	p.cite(c)
}

// toolReference reads a mark that names its source itself.
func (p *chat) toolReference(part Part, v scan.Value) {
	if v.Cut() {
		return
	}
	s := toolReferenceSource(v)
	if s.Key == "" {
		p.issue(IssueSourceless, "tool_reference", v)
		return
	}
	p.source(s)
	p.cite(&Cite{Part: part, Unit: Here, Covers: Point, Refs: []Ref{{Source: s.Key}}})
}

// toolReferenceSource reads what a tool_reference chunk names.
func toolReferenceSource(v scan.Value) *Source {
	s := &Source{
		Kind:    KindWeb,
		Title:   v.Get("title").Str(),
		URL:     v.Get("url").Str(),
		Content: v.Get("description").Str(),
		Raw:     v,
	}
	if s.Key = s.URL; s.Key == "" {
		s.Kind = KindTool
		if s.Title != "" {
			s.Key = v.Get("tool").Str() + ":" + s.Title
		}
	}
	return s
}

// toolResult returns the tool result with the id, as the request has it or bare.
func (p *chat) toolResult(id string) *Source {
	if p.tools == nil {
		p.tools = p.toolResults()
	}
	if s := p.tools[id]; s != nil {
		return s
	}
	return &Source{Key: id, ID: id, Kind: KindTool}
}

// toolResults collects the results of the request's tools: a message's content is JSON in a string, an object whose
// keys are the ids, or an array whose places are.
func (p *chat) toolResults() map[string]*Source {
	all := map[string]*Source{}
	docs := p.config.Documents
	for i := range docs {
		s := docs[i]
		if s.Key == "" {
			s.Key = numbered("", i)
		}
		all[s.Key] = &s
	}
	if len(docs) > 0 {
		return all
	}
	for a := scan.Elements(p.config.Request.Get("messages")); a.Next(); {
		if a.Val.Get("role").Str() != "tool" {
			continue
		}
		content := a.Val.Get("content")
		p.toolMessage(all, content)
		for c := scan.Elements(content); c.Next(); {
			p.toolMessage(all, c.Val.Get("text"))
		}
	}
	return all
}

func (p *chat) toolMessage(all map[string]*Source, content scan.Value) {
	if !content.IsString() {
		return
	}
	results := scan.Value(content.Bytes())
	for o := scan.Members(results); o.Next(); {
		if o.Val.IsObject() || o.Val.IsString() {
			all[string(o.Key)] = toolSource(string(o.Key), o.Val)
		}
	}
	i := 0
	for a := scan.Elements(results); a.Next(); i++ {
		all[number(i)] = toolSource(number(i), a.Val)
	}
}

// toolSource reads one result of a tool: an object with an address and a text under any of their usual names, or text.
func toolSource(id string, v scan.Value) *Source {
	s := &Source{Key: id, ID: id, Kind: KindTool, Raw: v}
	if v.IsString() {
		s.Content = v.Str()
		return s
	}
	s.URL, s.Title = firstText(v, "url", "link"), firstText(v, "title", "name")
	s.PublishedAt, s.Site = firstText(v, "date", "published_at"), v.Get("source").Str()
	if s.URL != "" {
		s.Kind = KindWeb
	}
	if s.Content = firstText(v, "content", "text", "snippet", "description"); s.Content == "" {
		a := scan.Elements(v.Get("snippets"))
		for a.Next() {
			if s.Content != "" {
				s.Content += "\n"
			}
			s.Content += a.Val.Text()
		}
	}
	return s
}
