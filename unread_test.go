package ibid_test

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
)

// strangers are members that no format has, by the names that the issues give them: two that look like sources by
// their names, and a list that does by its shape.
var strangers = map[string]string{
	"source_attributions": `[{"title":"Zebra","uri":"https://zebra.example/"}]`,
	"retrievedPassages":   `{"first":{"text":"A zebra."}}`,
	"further_reading":     `[{"title":"Zebra","url":"https://zebra.example/"}]`,
}

// strangeRoot and strangeInside match where a member is added: after the brace of a document, and after that of what
// has the text in it.
var (
	strangeRoot   = regexp.MustCompile(`(?m)^(?:data: |!\S+ |\[|,)* ?\{\s*`)
	strangeEvent  = regexp.MustCompile(`(?m)^(?:!\S+ )*\{"\w+": ?\{`) // of an AWS stream
	strangeInside = regexp.MustCompile(`"(?:message|delta|answer|data|metadata|output|response|chatResponse|` +
		`contentBlockDelta|modelTurn)":\s*\{\s*|` +
		`"(?:choices|candidates|output|outputs|steps|content|parts)":\s*\[\s*\{\s*`)
)

// strangeWhole matches where a member is added to what is read whole: lists of citations, and grounding.
var strangeWhole = regexp.MustCompile(`"(?:annotations?|citations?|groundingMetadata|grounding_metadata|references|` +
	`retrievedReferences|citationMetadata|retriever_resources|search_results)":\s*(?:\[\s*)?\{\s*`)

// Neither does one lose what a server adds to the citations and sources themselves.
func TestUnreadInsideSources(t *testing.T) {
	tried := map[string]bool{}
	for _, file := range vectorFiles(t) {
		v := readVector(t, file)
		format := filepath.Base(filepath.Dir(file))
		for _, section := range inputSections {
			data := v.section(section)
			if data == nil || bytes.Contains(data, []byte("unread")) || !strangeWhole.Match(data) {
				continue
			}
			whole, err := ibid.Decode(v.options.input(t, section, data), &v.options.decode)
			if err == nil && whole.Complete && whole.Format == format && unreadIn(t, v, section, data, strangeWhole) {
				tried[format] = true
			}
		}
	}
	for _, format := range []string{
		"anthropic-messages", "azure-chat", "bedrock-converse", "bedrock-rag", "cohere-v1", "cohere-v2", "dify-chat",
		"gemini-generate", "gemini-interactions", "gemini-live", "google-adk", "oci-chat", "openai-chat",
		"openai-responses", "openrouter-chat", "perplexity-chat", "snowflake-agents", "vertex-search",
	} {
		if !tried[format] {
			t.Errorf("%s: nothing unknown was found in its citations", format)
		}
	}
}

// flat are those whose documents have nothing inside but their lists of sources and what a stream repeats.
var flat = []string{
	"oci-chat stream inside", "cohere-v1 body inside", "bedrock-rag stream inside", "mistral-conversations stream inside",
	"generic-sources stream inside",
}

// No format loses in silence what a server adds: whatever looks like sources and is not read is the issue
// unread-sources with its path, and among the metadata, in bodies and in streams.
func TestUnreadSources(t *testing.T) {
	tried := map[string]bool{} // by format, section and place
	for _, file := range vectorFiles(t) {
		v := readVector(t, file)
		format := filepath.Base(filepath.Dir(file))
		for _, section := range inputSections {
			data := v.section(section)
			if data == nil || bytes.Contains(data, []byte("unread")) {
				continue
			}
			if whole, err := ibid.Decode(v.options.input(t, section, data), &v.options.decode); err != nil ||
				!whole.Complete || whole.Format != format {
				continue
			}
			kind, _, _ := strings.Cut(section, ".")
			for place, where := range map[string]*regexp.Regexp{"root": strangeRoot, "inside": strangeInside} {
				if place == "root" && section == "stream.aws.jsonl" {
					where = strangeEvent
				}
				if where.Match(data) && unreadIn(t, v, section, data, where) {
					tried[format+" "+kind+" "+place] = true
				}
			}
		}
	}
	for _, format := range slices.DeleteFunc(ibid.Formats(), func(s string) bool { return s == ibid.Generic }) {
		for _, kind := range []string{"body root", "stream root", "body inside", "stream inside"} {
			if !tried[format+" "+kind] && !slices.Contains(flat, format+" "+kind) {
				t.Errorf("%s: nothing unknown was found in %s", format, kind)
			}
		}
	}
}

// unreadIn reports whether each of the strangers is reported, wherever it is added.
func unreadIn(t *testing.T, v *vector, section string, data []byte, where *regexp.Regexp) bool {
	t.Helper()
	for name, value := range strangers {
		member := []byte(`"` + name + `":` + value + `,`)
		strange := where.ReplaceAllFunc(data, func(found []byte) []byte { return slices.Concat(found, member) })
		strange = bytes.ReplaceAll(strange, []byte(",}"), []byte("}"))
		a, err := ibid.Decode(v.options.input(t, section, strange), &v.options.decode)
		if err != nil {
			return false
		}
		found := slices.ContainsFunc(a.Issues, func(i ibid.Issue) bool {
			return i.Code == "unread-sources" && (i.Detail == name || strings.HasSuffix(i.Detail, "."+name))
		})
		if !found || !bytes.Contains(bytes.ToLower(a.Metadata["unknown"]), []byte("zebra")) {
			return false
		}
	}
	return true
}

// What providers really send is read: no recording has the issue.
func TestUnreadOfRecordings(t *testing.T) {
	for _, r := range readRecordings(t) {
		a, err := ibid.Decode(r.body, nil)
		if err != nil {
			continue // an error response
		}
		for _, i := range a.Issues {
			if i.Code == "unread-sources" {
				t.Errorf("%s: %s", r.path, i.Detail)
			}
		}
	}
}
