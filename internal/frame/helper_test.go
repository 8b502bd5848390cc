package frame_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/frame"
)

// record is a frame in comparable form.
type record struct {
	Event, Data     string
	Why             error // the error's reason
	Offset          int64 // the error's offset
	Done, Exception bool
}

// cutter returns the length of the next Write, given what is left.
type cutter func(left int) int

func whole(left int) int { return left }
func single(int) int     { return 1 }

func random(seed uint64, most int) cutter {
	r := rand.New(rand.NewPCG(seed, 1))
	return func(left int) int { return min(left, 1+r.IntN(most)) }
}

// split returns the frames of input. Each Write gets its bytes in a slice that is overwritten afterwards, which exposes
// retained bytes.
func split(t *testing.T, input []byte, limit int, cut cutter) ([]record, frame.Kind) {
	t.Helper()
	var got []record
	s := frame.Splitter{MaxDocument: limit}
	s.Emit = func(f frame.Frame) {
		r := record{Event: string(f.Event), Data: string(f.Data), Done: f.Done, Exception: f.Exception}
		if e, ok := errors.AsType[*frame.Error](f.Err); ok {
			r.Why, r.Offset = e.Err, e.Offset
		} else if f.Err != nil {
			t.Errorf("Frame.Err is a %T, want *Error", f.Err)
		}
		if n := len(got); s.Kind() == frame.Other && n > 0 {
			got[n-1].Data += r.Data // text is chunked arbitrarily
			return
		}
		got = append(got, r)
	}
	var scratch []byte
	for len(input) > 0 {
		n := cut(len(input))
		scratch = append(scratch[:0], input[:n]...)
		if took, err := s.Write(scratch); took != n || err != nil {
			t.Errorf("Write = %d, %v, want %d, nil", took, err, n)
		}
		for i := range scratch {
			scratch[i] = 0xAA
		}
		input = input[n:]
	}
	s.Close()
	return got, s.Kind()
}

// splitAnyhow returns the frames of input, and reports chunkings that change them.
func splitAnyhow(t *testing.T, input []byte, limit int) ([]record, frame.Kind) {
	t.Helper()
	want, kind := split(t, input, limit, whole)
	cuts := map[string]cutter{
		"byte by byte": single,
		"short cuts":   random(1, 5),
		"longer cuts":  random(2, 60),
		"network cuts": random(3, 1400),
	}
	for name, cut := range cuts {
		got, k := split(t, input, limit, cut)
		if k != kind {
			t.Errorf("%s: Kind = %v, in one Write %v", name, k, kind)
		}
		if diff := cmp.Diff(want, got, sameError()); diff != "" {
			t.Errorf("%s: frames differ from those of one Write (-one +cut):\n%s", name, diff)
		}
	}
	return want, kind
}

func sameError() cmp.Option {
	return cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) && errors.Is(b, a) })
}

// splitTest is one input and its expected frames.
type splitTest struct {
	name  string
	in    string
	limit int
	kind  frame.Kind
	want  []record
}

func (tt splitTest) run(t *testing.T) {
	t.Helper()
	t.Run(tt.name, func(t *testing.T) {
		got, kind := splitAnyhow(t, []byte(tt.in), tt.limit)
		if kind != tt.kind {
			t.Errorf("Kind = %v, want %v", kind, tt.kind)
		}
		if diff := cmp.Diff(tt.want, got, sameError()); diff != "" {
			t.Errorf("frames (-want +got):\n%s", diff)
		}
	})
}

// docs returns undamaged documents.
func docs(data ...string) []record {
	var out []record
	for _, d := range data {
		out = append(out, record{Data: d})
	}
	return out
}

// then appends records to others.
func then(a []record, b ...record) []record { return append(a, b...) }
