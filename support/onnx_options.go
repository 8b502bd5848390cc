package support

import (
	"errors"
	"io/fs"
)

// ErrNoONNX says that the program was built without the tag onnx.
var ErrNoONNX = errors.New("this program cannot run ONNX models: it was built without the tag onnx")

// ONNXOptions say which model [NewONNX] opens. Model and Library are required.
type ONNXOptions struct {
	// Model has the files of a sequence classifier as it is exported from Hugging Face: model.onnx (whole: weights in
	// another file are not supported), config.json with id2label and max_position_embeddings, and the vocabulary, as
	// vocab.txt of WordPiece (with tokenizer_config.json, if there is one, for do_lower_case), or as tokenizer.json of
	// WordPiece or of byte-level BPE. SentencePiece's Unigram (DeBERTa-v3, XLM-R) is not supported.
	Model fs.FS
	// Library is the path of ONNX Runtime's shared library. All models of a process use the same.
	Library string
	// Threshold is the least score of [Supported], and the least probability of [Contradicted]; 0:
	// DefaultONNXThreshold.
	Threshold float64
	// Entailment and Contradiction are labels of the model, where config.json names them in no usual way; empty:
	// recognised.
	Entailment, Contradiction string
	MaxTokens                 int // of claim and passage together; 0: what the model takes, at most MaxONNXTokens
	Threads                   int // that one run may use; 0: ONNX Runtime's choice
}

// The defaults and limits of an ONNX checker.
const (
	DefaultONNXThreshold = 0.5
	MaxONNXTokens        = 512
	ONNXBatch            = 16        // windows in one run
	MaxONNXWindows       = 256       // of one passage; what follows is not read, and an issue says so
	MaxONNXModel         = 1<<31 - 1 // bytes of model.onnx
	// of a claim, and at most a third of MaxTokens; the rest is not read, and an issue says so
	ONNXClaimTokens = 128
)

// The codes of issues that only an ONNX checker has.
const (
	IssueClaimCut   = "claim-cut"   // the claim is longer than the model takes
	IssuePassageCut = "passage-cut" // the passage is longer than MaxONNXWindows
)
