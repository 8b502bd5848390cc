package support

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
)

// maxVocabulary is how many bytes a file that describes a tokenizer may have.
const maxVocabulary = 64 << 20

// piece is a token of a text: its number, and where it stands.
type piece struct {
	id   int64
	span ibid.Span
}

// tokenizer cuts a text into the pieces that a model was trained with. Names of special tokens in the text are text.
type tokenizer interface {
	pieces(text string) []piece
}

// vocabulary is a tokenizer with the special tokens that frame a pair of texts.
type vocabulary struct {
	tokenizer

	begin, end, pad int64
	between         int  // how many ends stand between the two texts
	typed           bool // the second text has type 1
}

// readVocabulary reads vocab.txt, or tokenizer.json where there is none.
func readVocabulary(model fs.FS) (*vocabulary, error) {
	data, err := readLimited(model, "vocab.txt", maxVocabulary)
	if err == nil {
		return readVocabTxt(model, string(data))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	data, err = readLimited(model, "tokenizer.json", maxVocabulary)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("there is neither vocab.txt nor tokenizer.json")
	}
	if err != nil {
		return nil, err
	}
	v, err := readTokenizerJSON(data)
	if err != nil {
		return nil, fmt.Errorf("reading tokenizer.json: %w", err)
	}
	return v, nil
}

// readLimited reads a whole file.
func readLimited(model fs.FS, name string, limit int64) ([]byte, error) {
	info, err := fs.Stat(model, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", name, err)
	case info.Size() > limit:
		return nil, fmt.Errorf("reading %s: it has more than %d bytes", name, limit)
	}
	data, err := fs.ReadFile(model, name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return data, nil
}

// readVocabTxt reads BERT's vocabulary: a token a line, numbered from 0.
func readVocabTxt(model fs.FS, text string) (*vocabulary, error) {
	ids := map[string]int64{}
	n := int64(0)
	for line := range strings.Lines(text) {
		ids[strings.TrimRight(line, "\r\n")] = n
		n++
	}
	config := struct {
		Lower *bool `json:"do_lower_case"`
		Strip *bool `json:"strip_accents"`
	}{}
	data, err := readLimited(model, "tokenizer_config.json", maxVocabulary)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if err := json.Unmarshal(data, &config); err != nil {
			return nil, fmt.Errorf("reading tokenizer_config.json: %w", err)
		}
	}
	w := &wordPiece{ids: ids, prefix: "##", longest: 100, lower: config.Lower == nil || *config.Lower, chinese: true}
	w.strip = w.lower
	if config.Strip != nil {
		w.strip = *config.Strip
	}
	return frame(w, ids, "[UNK]", &w.unknown)
}

// tokenizerFile is what is read of a tokenizer.json.
type tokenizerFile struct {
	Added []struct {
		ID      int64  `json:"id"`
		Content string `json:"content"`
	} `json:"added_tokens"`
	Normalizer struct { // null: none
		Type    string `json:"type"`
		Lower   bool   `json:"lowercase"`
		Strip   *bool  `json:"strip_accents"`
		Chinese bool   `json:"handle_chinese_chars"`
	} `json:"normalizer"`
	Pre struct {
		Type  string `json:"type"`
		Space bool   `json:"add_prefix_space"`
	} `json:"pre_tokenizer"`
	Model struct {
		Type    string          `json:"type"`
		Unknown string          `json:"unk_token"`
		Prefix  *string         `json:"continuing_subword_prefix"`
		Longest int             `json:"max_input_chars_per_word"`
		Vocab   json.RawMessage `json:"vocab"`
		Merges  json.RawMessage `json:"merges"`
	} `json:"model"`
}

func readTokenizerJSON(data []byte) (*vocabulary, error) {
	var f tokenizerFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	if f.Model.Type != "WordPiece" && f.Model.Type != "BPE" {
		return nil, fmt.Errorf("its model is %q; WordPiece and byte-level BPE are supported", f.Model.Type)
	}
	ids := map[string]int64{}
	if err := json.Unmarshal(f.Model.Vocab, &ids); err != nil {
		return nil, fmt.Errorf("its vocabulary: %w", err)
	}
	specials := maps.Clone(ids)
	for _, added := range f.Added {
		specials[added.Content] = added.ID
	}
	if f.Model.Type == "WordPiece" {
		return f.wordPiece(ids, specials)
	}
	if f.Pre.Type != "ByteLevel" || f.Normalizer.Type != "" && f.Normalizer.Type != "NFC" {
		return nil, fmt.Errorf(
			"its normalizer %q and pre-tokenizer %q are not those of byte-level BPE", f.Normalizer.Type, f.Pre.Type,
		)
	}
	ranks, err := readMerges(f.Model.Merges)
	if err != nil {
		return nil, err
	}
	b := &bytePairs{ids: ids, ranks: ranks, space: f.Pre.Space, letters: byteLetters()}
	return frame(b, specials, "", nil)
}

func (f *tokenizerFile) wordPiece(ids, specials map[string]int64) (*vocabulary, error) {
	if f.Normalizer.Type != "BertNormalizer" || f.Pre.Type != "BertPreTokenizer" {
		return nil, fmt.Errorf("its normalizer %q and pre-tokenizer %q are not BERT's", f.Normalizer.Type, f.Pre.Type)
	}
	w := &wordPiece{
		ids:     ids,
		prefix:  "##",
		longest: 100,
		lower:   f.Normalizer.Lower,
		strip:   f.Normalizer.Lower,
		chinese: f.Normalizer.Chinese,
	}
	if f.Normalizer.Strip != nil {
		w.strip = *f.Normalizer.Strip
	}
	if f.Model.Prefix != nil {
		w.prefix = *f.Model.Prefix
	}
	if f.Model.Longest > 0 {
		w.longest = f.Model.Longest
	}
	return frame(w, specials, f.Model.Unknown, &w.unknown)
}

// readMerges reads the merges of a BPE: "a b", or ["a", "b"]. Its order is their rank.
func readMerges(data json.RawMessage) (map[[2]string]int, error) {
	var lines []string
	var pairs [][2]string
	if json.Unmarshal(data, &lines) == nil {
		for i, line := range lines {
			left, right, ok := strings.Cut(line, " ")
			if !ok {
				return nil, fmt.Errorf("its merge %d is no pair: %s", i, strconv.Quote(line))
			}
			pairs = append(pairs, [2]string{left, right})
		}
	} else if err := json.Unmarshal(data, &pairs); err != nil {
		return nil, fmt.Errorf("its merges: %w", err)
	}
	ranks := make(map[[2]string]int, len(pairs))
	for i, pair := range pairs {
		ranks[pair] = i
	}
	return ranks, nil
}

// frame finds the special tokens. If unknown is not nil, the token of that name is put there.
func frame(t tokenizer, specials map[string]int64, unknownName string, unknown *int64) (*vocabulary, error) {
	v := &vocabulary{tokenizer: t, between: 1, typed: true}
	names := [3]string{"[CLS]", "[SEP]", "[PAD]"}
	if _, ok := specials["[CLS]"]; !ok {
		names = [3]string{"<s>", "</s>", "<pad>"} // RoBERTa's
		v.between, v.typed = 2, false
	}
	for i, to := range []*int64{&v.begin, &v.end, &v.pad} {
		id, ok := specials[names[i]]
		if !ok {
			return nil, fmt.Errorf("the vocabulary has no token %s", names[i])
		}
		*to = id
	}
	if unknown != nil {
		id, ok := specials[unknownName]
		if !ok {
			return nil, fmt.Errorf("the vocabulary has no token %s", unknownName)
		}
		*unknown = id
	}
	return v, nil
}
