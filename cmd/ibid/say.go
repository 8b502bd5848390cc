package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"unicode"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/store/journal"
)

// maxWords is how many characters of a message are said: some hold what a provider sent.
const maxWords = 500

// say writes a message to the people who read w.
func say(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, "ibid: "+oneLine(fmt.Sprintf(format, args...)))
}

// hint writes what they can do about it, if that is known.
func hint(w io.Writer, advice string) {
	if advice != "" {
		fmt.Fprintln(w, "hint: "+oneLine(advice))
	}
}

// oneLine keeps what others wrote (file names, providers' messages) from looking like words of ours, and from doing
// things to a terminal.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\ufffd")), " ")
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || turnsText(r) {
			return -1
		}
		return r
	}, s)
	if head := text.Runes(s, maxWords); head != s {
		return head + "…"
	}
	return s
}

// paper is a text for people that is written line by line.
type paper struct{ strings.Builder }

// line writes a line that begins with so many spaces.
func (p *paper) line(indent int, format string, args ...any) {
	p.WriteString(strings.Repeat(" ", indent) + strings.TrimRight(oneLine(fmt.Sprintf(format, args...)), " ") + "\n")
}

// heading writes the heading of a part, below an empty line.
func (p *paper) heading(words string) { p.WriteString("\n" + words + "\n") }

// plural returns "1 issue" or "2 issues".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// The exit codes. 1 means no, which cite never says.
const (
	exitNo      = 1
	exitUnknown = 2
	exitPipe    = 128 + 13 // as shells report a program that SIGPIPE ended
)

// usageError says that the program was called in a wrong way.
type usageError struct {
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// webPage is the code of the error that ibid makes of an HTML page.
const webPage = "html-page"

var (
	errReported = errors.New("some input could not be read") // said already, for each input
	errNo       = errors.New("the answer is no")             // said already
	errBinary   = errors.New("these bytes are neither text nor compressed text")
	errUTF16    = errors.New("the text is UTF-16, not UTF-8")
	errUnpacked = errors.New("it unpacks to more than 64 MiB") // maxUnpacked
	errLarge    = errors.New("it has more than 64 MiB")        // maxUnpacked
	errNothing  = errors.New("nothing in it is of that format")
)

// verdict is what an error means to the user.
type verdict struct {
	exit  int
	code  string // names it in an answer document
	hint  string // what to do; empty: nothing is known
	quiet bool   // it needs no words
}

// explain is the one place that knows which exit code and which advice belong to an error.
func explain(err error) verdict {
	v := verdict{exit: exitUnknown, code: "unreadable"}
	var usage *usageError
	var answered *ibid.ProviderError
	var advised interface{ Hint() string }
	switch {
	case errors.As(err, &usage):
		v.hint = usage.hint
	case errors.As(err, &advised) && advised.Hint() != "":
		v.hint = advised.Hint()
	case errors.Is(err, errReported):
		v.quiet = true
	case errors.Is(err, errNo):
		v.exit, v.quiet = exitNo, true
	case errors.Is(err, syscall.EPIPE):
		v.exit, v.quiet = exitPipe, true
	case errors.As(err, &answered):
		v.code, v.hint = answered.Code, "the provider answered with this error; what came before it, if anything, is "+
			"shown"
		if v.code == webPage {
			v.hint = "this is a web page, not an answer: is the address of the API right, or did a proxy reply?"
		}
	case errors.Is(err, ibid.ErrEmpty):
		v.code, v.hint = "empty", "did the request fail? curl --fail-with-body --silent --show-error says why"
	case errors.Is(err, errUnpacked), errors.Is(err, errLarge), errors.Is(err, errLongLine),
		errors.Is(err, ibid.ErrTooLarge):
		v.code, v.hint = "too-large", "no answer is so large: is this a provider's response?"
	case errors.Is(err, errUTF16):
		v.hint = "PowerShell's > writes UTF-16: save the response with curl -o FILE"
	case errors.Is(err, errBinary):
		v.hint = "responses are JSON, event streams or text, also compressed with gzip, deflate, br or zstd"
	case errors.Is(err, errNothing):
		v.code, v.hint = "wrong-format", "without --format the format is recognised"
	case errors.Is(err, ibid.ErrDamaged):
		v.code, v.hint = "damaged", "what could be read is shown; save the response again"
	case serveHint(err) != "":
		v.hint = serveHint(err)
	case errors.Is(err, fs.ErrNotExist):
		v.hint = "name a file, or - for standard input"
	case errors.Is(err, syscall.EISDIR):
		v.hint = "name the files in the directory"
	}
	return v
}

// serveHint is what to do about an error of the commands that run a gateway or work at its database.
func serveHint(err error) string {
	switch {
	case errors.Is(err, journal.ErrLocked):
		return "another ibid serve uses this directory; --data DIR gives this one its own"
	case errors.Is(err, store.ErrNewer):
		return "a newer ibid has changed this database: use that one, or a copy of it from before"
	case errors.Is(err, store.ErrUnreachable):
		return "is PostgreSQL running there? ibid serve starts without it, and answers wait in the journal"
	case errors.Is(err, store.ErrFile):
		return "put a backup in its place, or move it away with its -wal and -shm: answers that wait in the journal " +
			"are stored then; `sqlite3 FILE .recover` reads what is left"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "is it running there?"
	case errors.Is(err, server.ErrConfigFile):
		return "--config names a YAML file; ibid serve works without one, too"
	}
	return ""
}

// newLogger returns the logger of a daemon: JSON lines, or text for a person at a terminal. A quiet one says what is
// wrong.
func newLogger(w io.Writer, quiet bool) *slog.Logger {
	o := &slog.HandlerOptions{ReplaceAttr: seconds}
	if quiet {
		o.Level = slog.LevelWarn
	}
	inner := w
	if l, ok := w.(*locked); ok {
		inner = l.w
	}
	if isTerminal(inner) {
		return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: o.Level}))
	}
	return slog.New(slog.NewJSONHandler(w, o))
}

// seconds makes durations numbers of seconds, as metrics have them; slog's own are nanoseconds.
func seconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}

// locked lets several goroutines write.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
