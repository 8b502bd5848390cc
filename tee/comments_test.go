package tee_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/tee"
)

// repeated returns a text forever, at most size bytes a read and after a pause before each. It counts its bytes.
type repeated struct {
	text  string
	size  int
	pause time.Duration
	sent  int
	out   int
}

func (r *repeated) Read(p []byte) (int, error) {
	time.Sleep(r.pause)
	n := 0
	for n < min(len(p), r.size) {
		c := copy(p[n:min(len(p), r.size)], r.text[r.sent:])
		n += c
		r.sent = (r.sent + c) % len(r.text)
	}
	r.out += n
	return n, nil
}

// A response that goes on with comments, or with anything else without an event, ends.
func TestEndlessComments(t *testing.T) {
	for name, tc := range map[string]struct{ before, text, answer string }{
		"comments from the start": {"", ": keep-alive\n\n", ""},
		"comments after text":     {chunkA, ": keep-alive\n\n", "a"},
		"carriage returns":        {chunkA, ": keep-alive\r\r", "a"},
		"one line":                {chunkA, ": keep-alive ", "a"},
		"blank lines":             {"", "\n", ""},
		"blank lines after text":  {chunkA, "\n", "a"},
		"names of events":         {chunkA, "event: ping\n\n", "a"},
		"ids":                     {chunkA, "id: 1\nretry: 5\n\n", "a"},
		"empty data":              {chunkA, "data:\n\n", "a"},
		"unknown fields":          {chunkA, "progress: 1\n\n", "a"},
		"in an event":             {chunkA + "data: {\"id\":\"c\",\n", ": keep-alive\n", "a"},
	} {
		for _, size := range []int{61, 32 << 10} {
			comments := &repeated{text: tc.text, size: size}
			var got tee.Result
			b := tee.NewBody(io.NopCloser(io.MultiReader(strings.NewReader(tc.before), comments)), &tee.Options{Done: func(r tee.Result) { got = r }})
			n, err := io.Copy(io.Discard, b)
			if !errors.Is(err, tee.ErrComments) || n < tee.MaxComments || n > tee.MaxComments+64<<10 || int(n) != len(tc.before)+comments.out {
				t.Errorf("%s, %d bytes a read: %d bytes, %v", name, size, n, err)
			}
			last := len(got.Answer.Issues) - 1
			if last < 0 || got.Answer.Issues[last].Code != tee.IssueEndlessComments || got.Answer.Complete || got.End != tee.EndBroken || !errors.Is(got.Err, tee.ErrComments) {
				t.Errorf("%s, %d bytes a read: %v, %v, complete %t, %v, %.100q", name, size, got.End, got.Err, got.Answer.Complete, got.Answer.Issues, got.Answer.Text)
			}
			if tc.answer != "" && got.Answer.Text != tc.answer {
				t.Errorf("%s, %d bytes a read: text %.40q", name, size, got.Answer.Text)
			}
		}
	}
}

// A comment now and then is no reason to end a response for an hour.
func TestCommentTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		b := tee.NewBody(io.NopCloser(&repeated{text: ": keep-alive\n\n", size: 14, pause: time.Second}), nil)
		_, err := io.Copy(io.Discard, b)
		if took := time.Since(began); !errors.Is(err, tee.ErrComments) || took < tee.MaxCommentTime || took > tee.MaxCommentTime+time.Minute {
			t.Errorf("%v after %v", err, took)
		}
	})
	synctest.Test(t, func(t *testing.T) { // a thought in every half hour, for a day
		parts := []io.Reader{}
		for range 48 {
			parts = append(parts, io.LimitReader(&repeated{text: ": keep-alive\n\n", size: 14, pause: time.Second}, 14*1800), strings.NewReader(chunkA))
		}
		var got tee.Result
		b := tee.NewBody(io.NopCloser(io.MultiReader(append(parts, strings.NewReader(chunkB+done))...)), &tee.Options{Done: func(r tee.Result) { got = r }})
		if _, err := io.Copy(io.Discard, b); err != nil || got.Answer.Text != strings.Repeat("a", 48)+"b" || len(got.Answer.Issues) > 0 {
			t.Errorf("%v, %+v", err, got)
		}
	})
}

// Long events are no comments, however they are cut, and neither is a long body or text.
func TestLongEvents(t *testing.T) {
	long := strings.Repeat("long ", 1<<19)
	chunk := strings.Replace(chunkA, `"a"`, `"`+long+`"`, 1)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	testenv.Must(io.WriteString(z, chunk+": "+strings.Repeat("-", tee.MaxComments/2)+"\n\n"+chunkB+done))(t)
	testenv.OK(t, z.Close())
	for name, tc := range map[string]struct {
		body string
		o    tee.Options
		want string
	}{
		"event":             {chunk + chunkB + done, tee.Options{}, long + "b"},
		"lines of an event": {strings.ReplaceAll(chunk, ",", ",\ndata: ") + chunkB + done, tee.Options{}, long + "b"},
		"body":              {strings.Replace(body, `"ab"`, `"`+long+`"`, 1), tee.Options{}, long},
		"text":              {long, tee.Options{Decode: ibid.DecodeOptions{Format: ibid.Generic}}, long},
		"gzip":              {packed.String(), tee.Options{Encoding: "gzip"}, long + "b"},
	} {
		var got tee.Result
		tc.o.Done = func(r tee.Result) { got = r }
		b := tee.NewBody(io.NopCloser(&upstream{pieces: strings.SplitAfter(tc.body, " "), err: io.EOF}), &tc.o)
		if n, err := io.Copy(io.Discard, b); err != nil || int(n) != len(tc.body) || got.Answer.Text != tc.want {
			t.Errorf("%s: %d bytes, %v, text of %d bytes, %v", name, n, err, len(got.Answer.Text), got.Err)
		}
	}
}

// A response that takes too long to decode passes on as it is, and its answer says that it is not all of it.
func TestWorkTime(t *testing.T) {
	want := strings.Repeat(chunkA, 2000)
	for size := range 3 {
		var got tee.Result
		in := &repeated{text: want, size: 100 << size}
		b := tee.NewBody(io.NopCloser(io.LimitReader(in, int64(len(want)))), &tee.Options{
			WorkTime: time.Nanosecond, Done: func(r tee.Result) { got = r },
		})
		all := testenv.Must(io.ReadAll(b))(t)
		if string(all) != want {
			t.Errorf("%d bytes passed of %d", len(all), len(want))
		}
		has := func(is ibid.Issue) bool { return is.Code == tee.IssueWorkTime }
		if !errors.Is(got.Err, tee.ErrWorkTime) || got.Answer.Complete || !slices.ContainsFunc(got.Answer.Issues, has) ||
			!strings.HasPrefix(strings.Repeat("a", 2000), got.Answer.Text) || len(got.Answer.Text) > 10 {
			t.Errorf("%d bytes at a time: %+v", in.size, got)
		}
	}
	whole := tee.NewBody(io.NopCloser(strings.NewReader(want)), &tee.Options{WorkTime: time.Minute, Done: func(r tee.Result) {
		if len(r.Answer.Text) != 2000 || r.Err != nil {
			t.Errorf("within the time: %+v", r)
		}
	}})
	testenv.Must(io.ReadAll(whole))(t)
}
