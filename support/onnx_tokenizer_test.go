package support

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// onnxFiles are the files of a model, made of testdata/onnx and of what a test adds or replaces.
func onnxFiles(tb testing.TB, files map[string]string) fstest.MapFS {
	tb.Helper()
	model := fstest.MapFS{}
	for name, from := range files {
		data := []byte(from)
		if at, ok := strings.CutPrefix(from, "@"); ok {
			var err error
			if data, err = os.ReadFile(filepath.Join("testdata", "onnx", at)); err != nil {
				tb.Fatal(err)
			}
		}
		model[name] = &fstest.MapFile{Data: data}
	}
	return model
}

// testdata/onnx/tokens.json is what @huggingface/tokenizers 0.2.0 makes of the same vocabularies.
func TestTokenizers(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "onnx", "tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want map[string][]struct {
		Text string
		IDs  []int64
	}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	for kind, model := range map[string]fs.FS{
		"wordpiece": onnxFiles(t, map[string]string{"vocab.txt": "@vocab.txt"}),
		"bpe":       onnxFiles(t, map[string]string{"tokenizer.json": "@bpe.json"}),
	} {
		v, err := readVocabulary(model)
		if err != nil {
			t.Fatal(err)
		}
		if len(want[kind]) == 0 {
			t.Errorf("no text for %s", kind)
		}
		for _, test := range want[kind] {
			got := []int64{}
			for _, p := range v.pieces(test.Text) {
				got = append(got, p.id)
			}
			if diff := cmp.Diff(test.IDs, got); diff != "" {
				t.Errorf("%s of %q (-theirs +ours):\n%s", kind, test.Text, diff)
			}
		}
	}
}

// tokenizer.json says the same as vocab.txt does.
func TestTokenizerJSON(t *testing.T) {
	vocab, err := os.ReadFile(filepath.Join("testdata", "onnx", "vocab.txt"))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]int{}
	for i, token := range strings.Split(strings.TrimSpace(string(vocab)), "\n") {
		ids[token] = i
	}
	file := func(lower bool) fs.FS {
		data, err := json.Marshal(map[string]any{
			"normalizer":    map[string]any{"type": "BertNormalizer", "lowercase": lower, "handle_chinese_chars": true},
			"pre_tokenizer": map[string]any{"type": "BertPreTokenizer"},
			"model":         map[string]any{"type": "WordPiece", "unk_token": "[UNK]", "vocab": ids},
		})
		if err != nil {
			t.Fatal(err)
		}
		return fstest.MapFS{"tokenizer.json": {Data: data}}
	}
	for _, lower := range []bool{true, false} {
		fromJSON, err := readVocabulary(file(lower))
		if err != nil {
			t.Fatal(err)
		}
		fromTxt, err := readVocabulary(onnxFiles(t, map[string]string{
			"vocab.txt": "@vocab.txt", "tokenizer_config.json": fmt.Sprintf(`{"do_lower_case":%t}`, lower),
		}))
		if err != nil {
			t.Fatal(err)
		}
		const text = "The bridge was Café 1932."
		if diff := cmp.Diff(fromTxt.pieces(text), fromJSON.pieces(text), cmp.AllowUnexported(piece{})); diff != "" {
			t.Errorf("lower %t (-vocab.txt +tokenizer.json):\n%s", lower, diff)
		}
		if known := fromTxt.pieces("Café")[0].id != ids64(ids, "[UNK]"); known != lower {
			t.Errorf("lower %t: Café is known: %t", lower, known)
		}
	}
}

func ids64(ids map[string]int, token string) int64 { return int64(ids[token]) }

func TestTokenizerErrors(t *testing.T) {
	for _, test := range []struct{ about, file, text, want string }{
		{"nothing", "other", "", "there is neither vocab.txt nor tokenizer.json"},
		{"no special tokens", "vocab.txt", "the\nbridge\n", "the vocabulary has no token <s>"},
		{"no unknown", "vocab.txt", "[CLS]\n[SEP]\n[PAD]\n", "the vocabulary has no token [UNK]"},
		{"no JSON", "tokenizer.json", "{", "reading tokenizer.json: unexpected end of JSON input"},
		{"another model", "tokenizer.json", `{"model":{"type":"Unigram","vocab":[["a",-1.5]]}}`, `reading tokenizer.json: its model is "Unigram"; WordPiece and byte-level BPE are supported`},
		{"another cut", "tokenizer.json", `{"model":{"type":"BPE","vocab":{}},"pre_tokenizer":{"type":"Metaspace"}}`, `reading tokenizer.json: its normalizer "" and pre-tokenizer "Metaspace" are not those of byte-level BPE`},
		{"another normaliser", "tokenizer.json", `{"model":{"type":"WordPiece","vocab":{}},"normalizer":{"type":"Sequence"}}`, `reading tokenizer.json: its normalizer "Sequence" and pre-tokenizer "" are not BERT's`},
		{"a merge of one", "tokenizer.json", `{"model":{"type":"BPE","vocab":{},"merges":["ab"]},"pre_tokenizer":{"type":"ByteLevel"}}`, `reading tokenizer.json: its merge 0 is no pair: "ab"`},
	} {
		t.Run(test.about, func(t *testing.T) {
			_, err := readVocabulary(onnxFiles(t, map[string]string{test.file: test.text}))
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// Pieces lie in the text, in order, whatever it is.
func FuzzTokenizers(f *testing.F) {
	for _, text := range []string{"", "The bridge, 1932.", " a  b\n", "日本\u200b桥", "\xff\xfea", "e\u0301", "it's 'll'", strings.Repeat("ab", 300)} {
		f.Add(text)
	}
	var all []*vocabulary
	for name, from := range map[string]string{"vocab.txt": "@vocab.txt", "tokenizer.json": "@bpe.json"} {
		v, err := readVocabulary(onnxFiles(f, map[string]string{name: from}))
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, v)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, v := range all {
			end := 0
			for _, p := range v.pieces(text) {
				if p.span.Start < 0 || p.span.End > len(text) || p.span.Start > p.span.End || p.span.End < end {
					t.Fatalf("piece %v after %d in %q", p, end, text)
				}
				end = p.span.End
			}
		}
	})
}
