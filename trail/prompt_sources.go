package trail

import (
	"encoding/xml"
	"strings"
)

// promptSources is what ibid.PromptSources writes.
type promptSources struct {
	Results []struct {
		ID       string   `xml:"file_id,attr"`
		Name     string   `xml:"filename,attr"`
		URL      string   `xml:"url,attr"`
		Contents []string `xml:"content"`
	} `xml:"result"`
}

// pastedSources reads what ibid.PromptSources wrote, wherever it stands in the text.
func pastedSources(text string) []Source {
	const begin, end = "<sources><result file_id=", "</sources>"
	from := strings.Index(text, begin)
	if from < 0 {
		return nil
	}
	to := strings.Index(text[from:], end)
	if to < 0 {
		return nil
	}
	var read promptSources
	if xml.Unmarshal([]byte(text[from:from+to+len(end)]), &read) != nil {
		return nil
	}
	var list []Source
	for i, r := range read.Results {
		for _, content := range r.Contents {
			if content = strings.TrimSpace(content); content != "" && len(list) < maxPromptSources {
				list = append(
					list,
					Source{DocumentID: r.ID, Title: r.Name, URL: r.URL, Content: content, Rank: i + 1, Retrieved: true},
				)
			}
		}
	}
	return list
}
