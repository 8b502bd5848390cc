package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"regexp"
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

// maxWords limits the characters of a message, which may contain provider data.
const maxWords = 500

// userOf matches the user and password of a URL.
var userOf = regexp.MustCompile(`://[^/?#@\s"]+@`)

// say writes a message for people, without the passwords of URLs, since it may be logged.
func say(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, "ibid: "+oneLine(userOf.ReplaceAllString(fmt.Sprintf(format, args...), "://…@")))
}

// hint writes advice on what to do, if there is any.
func hint(w io.Writer, advice string) {
	if advice != "" {
		fmt.Fprintln(w, "hint: "+oneLine(advice))
	}
}

// oneLine prevents foreign text (file names, providers' messages) from looking like our own messages, and from
// controlling the terminal.
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

// paper is a text for people, written line by line.
type paper struct{ strings.Builder }

// line writes an indented line.
func (p *paper) line(indent int, format string, args ...any) {
	p.WriteString(strings.Repeat(" ", indent) + strings.TrimRight(oneLine(fmt.Sprintf(format, args...)), " ") + "\n")
}

// heading writes a heading after an empty line.
func (p *paper) heading(words string) { p.WriteString("\n" + words + "\n") }

// plural returns "1 issue" or "2 issues".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// The exit codes. 1 means no, which cite never returns.
const (
	exitNo      = 1
	exitUnknown = 2
	exitPipe    = 128 + 13 // what shells report for a program ended by SIGPIPE
)

// usagef returns a usage error with a hint.
func usagef(advice, format string, args ...any) error { return server.Usagef(advice, format, args...) }

// webPage is the code of the error for an HTML page.
const webPage = "html-page"

var (
	errReported = errors.New("some input could not be read") // already reported for each input
	errNo       = errors.New("the answer is no")             // already reported
	errBinary   = errors.New("the data is neither text nor compressed text")
	errUTF16    = errors.New("the text is UTF-16, not UTF-8")
	errUnpacked = errors.New("it unpacks to more than 64 MiB") // maxUnpacked
	errLarge    = errors.New("it has more than 64 MiB")        // maxUnpacked
	errNothing  = errors.New("nothing in it is of that format")
)

// verdict is what an error means to the user.
type verdict struct {
	exit  int
	code  string // the error's code in an answer document
	hint  string // empty if there is none
	quiet bool   // it was already reported
}

// explain returns the exit code and the hint of an error.
func explain(err error) verdict {
	v := verdict{exit: exitUnknown, code: "unreadable"}
	var answered *ibid.ProviderError
	var advised interface{ Hint() string }
	switch {
	case errors.As(err, &advised) && advised.Hint() != "":
		v.hint = advised.Hint()
	case errors.Is(err, errReported):
		v.quiet = true
	case errors.Is(err, errNo):
		v.exit, v.quiet = exitNo, true
	case errors.Is(err, syscall.EPIPE):
		v.exit, v.quiet = exitPipe, true
	case errors.As(err, &answered) && answered.Code == webPage:
		v.code = webPage
		v.hint = "this is a web page, not an answer: is the API's URL right, or did a proxy reply?"
	case errors.As(err, &answered):
		v.code = answered.Code
		v.hint = "the provider returned this error; anything that came before it is shown"
	default:
		for _, known := range advice {
			if errors.Is(err, known.about) {
				v.code, v.hint = cmp.Or(known.code, v.code), known.hint
				break
			}
		}
	}
	return v
}

const tooLarge = "answers are not that large: is this a provider's response?"

// advice lists the hints for errors and their codes in answer documents. The first match counts.
var advice = []struct {
	about      error
	code, hint string
}{
	{ibid.ErrEmpty, "empty", "did the request fail? curl --fail-with-body --silent --show-error shows why"},
	{errUnpacked, "too-large", tooLarge},
	{errLarge, "too-large", tooLarge},
	{errLongLine, "too-large", tooLarge},
	{ibid.ErrTooLarge, "too-large", tooLarge},
	{errUTF16, "", "PowerShell's > writes UTF-16: save the response with curl -o FILE"},
	{errBinary, "", "responses are JSON, event streams or text, optionally compressed with gzip, deflate, br or zstd"},
	{errNothing, "wrong-format", "without --format the format is detected"},
	{ibid.ErrDamaged, "damaged", "what could be read is shown; save the response again"},
	// errors of the commands that run a gateway or use its database
	{journal.ErrLocked, "", "another ibid serve uses this directory; --data DIR gives this one its own"},
	{store.ErrServed, "", "--db FILE gives this one its own; several servers can share a PostgreSQL database"},
	{store.ErrNewer, "", "a newer ibid has changed this database: use that version, or an older backup"},
	{store.ErrUnreachable, "", "is PostgreSQL running there? ibid serve starts without it, and answers wait in the " +
		"journal"},
	{store.ErrFile, "", "`ibid backup --db FILE COPY` says whether the file is whole; if not, put a backup in " +
		"its place, or move it away, without its -wal and -shm; answers waiting in the journal are then stored; " +
		"`sqlite3 FILE .recover` reads what is left"},
	{syscall.ECONNREFUSED, "", "is the server running there?"},
	{server.ErrConfigFile, "", "--config names a YAML file; ibid serve also works without one"},
	{fs.ErrNotExist, "", "name a file, or - for standard input"},
	{syscall.EISDIR, "", "name the files in the directory"},
}

// newLogger returns the logger of a daemon: JSON lines, or text if a person is at a terminal. A quiet one logs only
// warnings and errors.
func newLogger(w io.Writer, quiet bool) *slog.Logger {
	o := &slog.HandlerOptions{}
	if quiet {
		o.Level = slog.LevelWarn
	}
	inner := w
	if l, ok := w.(*locked); ok {
		inner = l.w
	}
	if isTerminal(inner) {
		return slog.New(slog.NewTextHandler(w, o))
	}
	// Durations are logged in seconds, as in metrics; slog uses nanoseconds.
	o.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration {
			a.Value = slog.Float64Value(a.Value.Duration().Seconds())
		}
		return a
	}
	return slog.New(slog.NewJSONHandler(w, o))
}

// locked is a writer that is safe for concurrent use.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
