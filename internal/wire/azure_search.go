package wire

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// Agents of Azure AI Foundry that search with Azure AI Search cite every document by the address of the search service.
// Which document it is only the title tells, doc_N: the N-th of the search's output.

// azureSearch reads the output of a search: an object, or JSON in a string, with the documents and their addresses.
func (p *responses) azureSearch(output scan.Value) {
	if output.IsString() {
		output = output.Bytes()
	}
	p.azure = p.azure[:0]
	addresses := scan.Elements(output.Get("get_urls"))
	for a := scan.Elements(output.Get("documents")); a.Next() && !a.Cut() && len(p.azure) < maxItems; {
		addresses.Val = nil
		addresses.Next()
		s, _ := listed(a.Val)
		s.Kind, s.ID = kindFile, ""
		if s.Filename = fileTitle(s.Title); s.Filename == "" {
			s.Kind = kindDocument
		}
		s.URL = cmp.Or(s.URL, addresses.Val.Str())
		if s.ChunkID = cmp.Or(s.ChunkID, a.Val.Get("id").Text()); s.URL == "" {
			s.GlobalID = cmp.Or(s.GlobalID, s.ChunkID)
		}
		s.Key = "search:" + cmp.Or(s.URL, s.GlobalID, strconv.Itoa(len(p.azure)))
		if !p.Keep(2*sourceSize + len(s.URL) + len(s.Content) + len(s.Title)) {
			return
		}
		p.source(s)
		p.azure = append(p.azure, *s)
	}
	if len(p.azure) == 0 { // only the addresses
		for a := scan.Elements(output.Get("get_urls")); a.Next() && len(p.azure) < maxItems && p.Keep(2*sourceSize); {
			s := Source{Key: "search:" + a.Val.Str(), Kind: kindDocument, URL: a.Val.Str()}
			p.source(&s)
			p.azure = append(p.azure, s)
		}
	}
}

// azureNote completes an annotation that names a document by its position. Without the output of the search each
// position is a source of its own.
func (p *responses) azureNote(n *note) {
	position, ok := strings.CutPrefix(n.title, "doc_")
	i, err := strconv.Atoi(position)
	if !ok || err != nil || i < 0 || n.kind != "url_citation" {
		return
	}
	if i < len(p.azure) {
		s := &p.azure[i]
		n.named, n.url, n.title = s.Key, s.URL, s.Title
		return
	}
	if strings.Contains(n.url, ".search.windows.net") || len(p.azure) > 0 {
		n.named = n.url + "#" + n.title
		n.url = n.named
	}
}
