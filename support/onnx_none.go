//go:build !onnx

package support

import "context"

// ONNX is a [Checker] that runs a model in this process. This program was built without the tag onnx, and has none.
type ONNX struct{}

// NewONNX returns [ErrNoONNX].
func NewONNX(*ONNXOptions) (*ONNX, error) { return nil, ErrNoONNX }

// Check implements [Checker].
func (*ONNX) Check(context.Context, []Pair) ([]Verdict, error) { return nil, ErrNoONNX }

// Info implements [Checker].
func (*ONNX) Info() Info { return Info{ID: "onnx"} }

// Close implements io.Closer.
func (*ONNX) Close() error { return nil }
