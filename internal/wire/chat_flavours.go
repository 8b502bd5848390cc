package wire

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// flavour is one provider's kind of Chat Completions. Of two that a document shows, the greater counts: what a gateway
// or a host adds tells more than the name of a model that many serve.
type flavour uint8

// The flavours.
const (
	plainChat flavour = iota + 1
	mistralChat
	deepSeekChat
	zhipuChat
	qwenChat
	xaiChat
	perplexityChat
	groqChat
	openRouterChat
	azureChat
)

// names returns the format and the provider of a flavour.
func (f flavour) names() (format, provider string) {
	switch f {
	case mistralChat:
		return "mistral-chat", "mistral"
	case xaiChat:
		return "xai-chat", "xai"
	case perplexityChat:
		return "perplexity-chat", "perplexity"
	case openRouterChat:
		return "openrouter-chat", "openrouter"
	case azureChat:
		return "azure-chat", "azure"
	case deepSeekChat:
		return "openai-chat", "deepseek"
	case zhipuChat:
		return "openai-chat", "zhipu"
	case qwenChat:
		return "openai-chat", "dashscope"
	case groqChat:
		return "openai-chat", "groq"
	case plainChat:
	}
	return "openai-chat", ""
}

func looksAzureChat(s *shape) bool   { return chatFlavour(s) == azureChat }
func looksPerplexity(s *shape) bool  { return chatFlavour(s) == perplexityChat }
func looksOpenRouter(s *shape) bool  { return chatFlavour(s) == openRouterChat }
func looksXAIChat(s *shape) bool     { return chatFlavour(s) == xaiChat }
func looksMistralChat(s *shape) bool { return chatFlavour(s) == mistralChat }

// chatFlavour reads a document to see what flavour it shows; 0 for what is no Chat Completion.
func chatFlavour(s *shape) flavour {
	if s.chat != 0 || !isChat(s) {
		return s.chat
	}
	p := &chat{out: out{emit: func(*Op) {}}, config: &Config{}, flavour: plainChat, looking: true}
	p.Parse(nil, s.doc)
	s.chat = p.flavour
	return s.chat
}

func isChat(s *shape) bool {
	if strings.HasPrefix(s.kind, "chat.") || strings.HasPrefix(s.kind, "extensions.chat.") {
		return true
	}
	choices := s.val("choices")
	if s.kind != "" || !choices.IsArray() {
		return false
	}
	a := scan.Elements(choices)
	if !a.Next() { // the first and the last chunk of some streams
		return s.hasAny("usage", "prompt_filter_results")
	}
	first := a.Val
	return first.Get("message") != nil || first.Get("delta") != nil || first.Get("messages") != nil
}

// become takes a flavour that a document shows, and says it.
func (p *chat) become(f flavour) {
	if f <= p.flavour {
		return
	}
	p.flavour = f
	if format, provider := f.names(); provider != "" {
		p.say(Op{Kind: Head, Name: HeadFormat, More: format})
		p.say(Op{Kind: Head, Name: HeadProvider, More: provider})
	}
}

// flavourOf returns the flavour that a model's name shows.
func flavourOf(model string) flavour {
	switch {
	case isGrok(model):
		return xaiChat
	case isSonar(model) && !strings.Contains(model, "/"):
		return perplexityChat
	case strings.HasPrefix(model, "groq/"):
		return groqChat
	case isDeepSeek(model):
		return deepSeekChat
	case isMistral(model):
		return mistralChat
	}
	return plainChat
}

func isDeepSeek(model string) bool {
	return strings.HasPrefix(model, "deepseek-") && !strings.Contains(model, "/")
}

// isSonar reports whether a model is Perplexity's, in its own or in a gateway's naming.
func isSonar(model string) bool {
	model, gateway := strings.CutPrefix(model, "perplexity/")
	return gateway || strings.HasPrefix(model, "sonar") || strings.HasPrefix(model, "pplx-") || model == "r1-1776"
}

func isMistral(model string) bool {
	if strings.Contains(model, "/") {
		return false
	}
	for _, family := range []string{"mistral-", "magistral-", "ministral-", "codestral-", "pixtral-", "devstral-", "voxtral-", "open-mistral-", "open-mixtral-"} {
		if strings.HasPrefix(model, family) {
			return true
		}
	}
	return false
}

// extra reads a top-level member that only some send.
func (p *chat) extra(name string, v scan.Value) {
	switch name {
	case "provider":
		if v.IsString() {
			p.become(openRouterChat)
		}
	case "x_groq":
		p.become(groqChat)
	case "prompt_filter_results":
		p.become(azureChat)
	case "images", "related_questions", "videos":
		p.meta(name, v)
	case "web_search":
		if p.isNew(name, v) && v.IsArray() {
			p.become(zhipuChat)
			p.webSources(v)
		}
	case "search_info":
		if p.isNew(name, v) && v.IsObject() {
			p.become(qwenChat)
			p.webSources(v.Get("search_results"))
		}
	default:
		if strings.HasPrefix(name, "vertex_ai_") { // what a gateway keeps of Gemini's metadata
			p.meta(name, v)
		}
	}
}

// isNew reports whether a top-level member differs from what it was in the last document, and remembers it.
func (p *chat) isNew(name string, v scan.Value) bool {
	if v.IsNull() || bytes.Equal(p.lists[name], v) {
		return false
	}
	if p.lists == nil {
		p.lists = map[string][]byte{}
	}
	p.lists[name] = append(p.lists[name][:0], v...)
	return true
}

// webSources says search results that no citation names.
func (p *chat) webSources(list scan.Value) {
	for a := scan.Elements(list); a.Next(); {
		s := &Source{Kind: KindWeb, Raw: a.Val}
		for o := scan.Members(a.Val); o.Next(); {
			switch string(o.Key) {
			case "url", "link":
				s.URL = o.Val.Str()
			case "title":
				s.Title = o.Val.Str()
			case "content":
				s.Content = o.Val.Str()
			case "score":
				s.Score = score(o.Val)
			case "site_name", "media":
				s.Site = o.Val.Str()
			case "publish_date":
				s.PublishedAt = o.Val.Str()
			}
		}
		if s.Key = s.URL; s.Key != "" {
			p.source(s)
		}
	}
}

// executedTools reads the searches that Groq's compound models ran. Its text does not say what came from where.
func (p *chat) executedTools(list scan.Value) {
	p.become(groqChat)
	for a := scan.Elements(list); a.Next(); {
		if arguments := a.Val.Get("arguments"); arguments.IsString() { // JSON in a string
			p.query(scan.Value(arguments.Bytes()).Get("query"))
		}
		p.webSources(a.Val.Get("search_results").Get("results"))
	}
}

// evidence reads the lists that Perplexity and xAI send beside the choices: for Perplexity what [n] in the text stands
// for, for xAI what the answer as a whole rests on.
func (p *chat) evidence(d *chatDoc) {
	if d.citations.IsNull() && d.results.IsNull() {
		return
	}
	if first := scan.Elements(d.citations); p.flavour != xaiChat && (first.Next() || d.results.IsArray()) {
		p.become(perplexityChat)
	}
	fresh := p.isNew("citations", d.citations)
	fresh = p.isNew("search_results", d.results) || fresh
	if !fresh {
		return
	}
	found := searchResults(d.results)
	if p.flavour == xaiChat {
		p.unplaced(d.citations, found)
		return
	}
	p.numbers, p.style = nil, BracketNumber
	n := 0
	for a := scan.Elements(d.citations); a.Next() && !a.Cut(); n++ {
		s := citedURL(a.Val)
		if s.URL == "" {
			p.issue(IssueWrongType, "citations", a.Val)
		}
		s.Key = number(n + 1)
		describe(s, found, n)
		p.source(s)
		p.numbers = append(p.numbers, Ref{Source: s.Key})
	}
	if n == 0 {
		p.resultsOnly(found)
	}
	for i := range found {
		if n > 0 && found[i].source != nil { // found, but nothing in the text can name it
			p.source(found[i].source)
		}
	}
	p.told()
}

func number(n int) string { return numbered("", n) }

// citedURL reads an element of citations: an address, or an object with one.
func citedURL(v scan.Value) *Source {
	if v.IsObject() {
		s, _ := searchResult(v)
		return s
	}
	return &Source{Kind: KindWeb, URL: v.Str(), Raw: v}
}

// found is a search result until a citation takes it.
type found struct {
	source *Source
	id     int
}

func searchResults(list scan.Value) []found {
	var all []found
	for a := scan.Elements(list); a.Next() && len(all) < maxNumber; {
		s, id := searchResult(a.Val)
		s.Key = s.URL
		all = append(all, found{s, id})
	}
	return all
}

// describe takes what the search results say of the n-th citation: the one with its address, of several the one at its
// place.
func describe(s *Source, all []found, n int) {
	same := func(i int) bool { return i < len(all) && all[i].source != nil && all[i].source.URL == s.URL }
	i := n
	if !same(i) {
		i = slices.IndexFunc(all, func(f found) bool { return f.source != nil && f.source.URL == s.URL })
	}
	if i < 0 {
		return
	}
	key := s.Key
	*s = *all[i].source
	s.Key = key
	all[i].source = nil
}

// resultsOnly numbers search results that come without a list of citations, by their ids if they have any.
func (p *chat) resultsOnly(all []found) {
	for i, f := range all {
		n := i + 1
		if f.id > 0 && f.id <= maxNumber {
			n = f.id
		}
		f.source.Key = number(n)
		for len(p.numbers) < n {
			p.numbers = append(p.numbers, Ref{})
		}
		p.numbers[n-1].Source = f.source.Key
		p.source(f.source)
	}
}

// told tells all candidates what the marks in their text stand for.
func (p *chat) told() {
	if len(p.numbers) == 0 {
		return
	}
	p.zero.marked = false
	for _, c := range p.choices {
		c.marked = false
	}
	p.candidate(0)
	for _, index := range slices.Sorted(maps.Keys(p.choices)) {
		p.candidate(index)
	}
}

// unplaced says sources that the whole answer of a candidate rests on.
func (p *chat) unplaced(citations scan.Value, all []found) {
	n := 0
	for a := scan.Elements(citations); a.Next() && !a.Cut(); n++ {
		s := citedURL(a.Val)
		if s.URL == "" {
			p.issue(IssueSourceless, "citations", a.Val)
			continue
		}
		describe(s, all, n)
		s.Key = s.URL
		p.source(s)
		p.cite(&Cite{Key: "all/" + s.Key, Unit: Nowhere, Refs: []Ref{{Source: s.Key}}})
	}
}

// annotated makes [n] in the text stand for the n-th annotation, as it does where OpenRouter passes Perplexity on.
func (p *chat) annotated(index int, urls []string) {
	if len(p.numbers) > 0 && p.numbers[0].Source == urls[0] { // the whole list again
		p.numbers = nil
	}
	for _, url := range urls {
		p.numbers = append(p.numbers, Ref{Source: url})
	}
	p.style = BracketNumber
	p.of(index).marked = false
	p.candidate(index)
}
