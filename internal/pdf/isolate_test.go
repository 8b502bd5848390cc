package pdf_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/pdf"
	"github.com/ibidhq/ibid/internal/testenv"
)

// TestMain is also the process that reads a PDF, and those that fail at it.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 {
		os.Exit(m.Run())
	}
	switch os.Args[1] {
	case "read":
		if err := pdf.Serve(os.Stdin, os.Stdout, os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	case "spin":
		pdf.LimitProcess(time.Second)
		for i := 0; ; i++ { // a bug
			runtime.KeepAlive(i)
		}
	case "sleep":
		time.Sleep(time.Hour)
	case "grow":
		pdf.LimitProcess(time.Minute)
		var all [][]byte
		for {
			all = append(all, make([]byte, 1<<20))
			clear(all[len(all)-1])
		}
	case "panic":
		panic("a bug")
	case "flood":
		for {
			_, _ = os.Stdout.WriteString(strings.Repeat("x", 1<<20))
		}
	case "env":
		fmt.Fprint(os.Stderr, len(os.Environ()), os.Getenv("IBID_TEST_SECRET"))
		os.Exit(1)
	default:
		os.Exit(m.Run())
	}
}

func isolate(t *testing.T, args ...string) {
	t.Helper()
	pdf.Isolate(testenv.Must(os.Executable())(t), append([]string{"ibid"}, args...)...)
	t.Cleanup(pdf.EndIsolation)
}

// Another process reads the same as this one.
func TestIsolated(t *testing.T) {
	file := testenv.Must(os.ReadFile("../../snapshot/testdata/chromium.pdf"))(t)
	want := testenv.Must(pdf.Read(t.Context(), file, 10, time.Minute))(t)
	isolate(t, "read")
	got := testenv.Must(pdf.Read(t.Context(), file, 10, time.Minute))(t)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-here +there):\n%s", diff)
	}
	if _, err := pdf.Read(t.Context(), file[:200], 10, time.Minute); !errors.Is(err, pdf.ErrDamaged) {
		t.Errorf("truncated: %v, want ErrDamaged", err)
	}
	late, err := pdf.Read(t.Context(), file, 10, time.Nanosecond)
	if !errors.Is(err, pdf.ErrTimeout) && (err != nil || late.Stopped != nil && !errors.Is(late.Stopped, pdf.ErrTimeout)) {
		t.Errorf("without time: %+v, %v", late, err)
	}
}

// Whatever a bug of the reader does, it costs one source.
func TestIsolatedFails(t *testing.T) {
	t.Setenv("IBID_TEST_SECRET", "s3cr3t")
	for _, test := range []struct {
		how  string
		want error
		unix bool // only with limits of the system
	}{
		{"sleep", pdf.ErrTimeout, false},
		{"spin", pdf.ErrDamaged, true},
		{"grow", pdf.ErrDamaged, true},
		{"panic", pdf.ErrDamaged, false},
		{"flood", pdf.ErrTooLarge, false},
		{"env", pdf.ErrDamaged, false},
	} {
		if test.unix && runtime.GOOS != "linux" {
			continue
		}
		isolate(t, test.how)
		most := 30 * time.Second
		if test.how == "sleep" {
			most = 100 * time.Millisecond
		}
		began := time.Now()
		d, err := pdf.Read(t.Context(), []byte("%PDF-1.7"), 10, most)
		if d != nil || !errors.Is(err, test.want) {
			t.Errorf("%s: %+v, %v, want %v", test.how, d, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: the process got our environment", test.how)
		}
		t.Logf("%s: %v: %v", test.how, time.Since(began), err)
	}
}

// A caller that leaves ends the process.
func TestIsolatedAbandoned(t *testing.T) {
	isolate(t, "sleep")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := pdf.Read(ctx, []byte("%PDF-1.7"), 10, time.Minute)
	if !errors.Is(err, pdf.ErrTimeout) || time.Since(began) > 20*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

// Where no process can be started, PDFs are read in this one.
func TestIsolatedNowhere(t *testing.T) {
	pdf.Isolate("/nonexistent/ibid", "ibid", "read")
	t.Cleanup(pdf.EndIsolation)
	file := testenv.Must(os.ReadFile("../../snapshot/testdata/chromium.pdf"))(t)
	if d := testenv.Must(pdf.Read(t.Context(), file, 10, time.Minute))(t); len(d.Paragraphs) != 6 {
		t.Errorf("%+v", d)
	}
}

// A reading in this process ends soon after its context.
func TestContext(t *testing.T) {
	page := "%PDF-1.7\n" + strings.Repeat("1 0 obj [1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1] endobj\n", 1<<18)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, work, _, err := pdf.ReadHere(ctx, []byte(page), time.Minute)
	if !errors.Is(err, pdf.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) || work > pdf.MaxWork/2 {
		t.Errorf("%v after the work %d", err, work)
	}
}

// FuzzRead looks for files whose reading exceeds the work and the memory that it counts, or takes longer than its work.
func FuzzRead(f *testing.F) {
	f.Add([]byte("%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Kids[3 0 R]>>endobj 3 0 obj<</Contents 4 0 R" +
		"/Resources<</Font<</F<</Subtype/Type1>>>>/XObject<</X 4 0 R>>>>>>endobj 4 0 obj<</Subtype/Form/Filter/AHx>>stream\n" +
		"4254202f462031302054662028616229205469202f5820446f20455420>\nendstream endobj"))
	f.Add([]byte("%PDF-1.7\n1 0 obj<</Type/ObjStm/N 9/First 4/Filter[/LZW/Fl/RL/A85]/DecodeParms[<</Predictor 2/Columns 0>>" +
		"<</Predictor 15/Colors 9>>]>>stream\n\x80\x40\x40\nendstream endobj trailer<</Root 1 0 R>>"))
	for _, name := range []string{"../../snapshot/testdata/chromium.pdf"} {
		f.Add(testenv.Must(os.ReadFile(name))(f))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		const maxTime, perWork, overshoot = time.Minute, 200 * time.Nanosecond, 32 << 20
		began := time.Now()
		_, work, memory, _ := pdf.ReadHere(t.Context(), b, maxTime)
		took := time.Since(began)
		if work > pdf.MaxWork+overshoot || memory > pdf.MaxMemory+overshoot {
			t.Errorf("it took the work %d and the memory %d", work, memory)
		}
		if most := time.Second + perWork*time.Duration(work); took > most {
			t.Errorf("it took %v for the work %d", took, work)
		}
	})
}
