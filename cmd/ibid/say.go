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

// maxWords is how many characters of a message are said: some hold what a provider sent.
const maxWords = 500

// userOf finds who an address says its reader is, with the password.
var userOf = regexp.MustCompile(`://[^/?#@\s"]+@`)

// say writes a message to the people who read w, without the passwords of addresses: it may be kept in a log.
func say(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, "ibid: "+oneLine(userOf.ReplaceAllString(fmt.Sprintf(format, args...), "://…@")))
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

// usagef returns the error of a program that was called in a wrong way, with what to do about it.
func usagef(advice, format string, args ...any) error { return server.Usagef(advice, format, args...) }

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
		v.hint = "this is a web page, not an answer: is the address of the API right, or did a proxy reply?"
	case errors.As(err, &answered):
		v.code = answered.Code
		v.hint = "the provider answered with this error; what came before it, if anything, is shown"
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

const tooLarge = "no answer is so large: is this a provider's response?"

// advice is what to do about errors, and which codes they have in answer documents. The first that fits counts.
var advice = []struct {
	about      error
	code, hint string
}{
	{ibid.ErrEmpty, "empty", "did the request fail? curl --fail-with-body --silent --show-error says why"},
	{errUnpacked, "too-large", tooLarge},
	{errLarge, "too-large", tooLarge},
	{errLongLine, "too-large", tooLarge},
	{ibid.ErrTooLarge, "too-large", tooLarge},
	{errUTF16, "", "PowerShell's > writes UTF-16: save the response with curl -o FILE"},
	{errBinary, "", "responses are JSON, event streams or text, also compressed with gzip, deflate, br or zstd"},
	{errNothing, "wrong-format", "without --format the format is recognised"},
	{ibid.ErrDamaged, "damaged", "what could be read is shown; save the response again"},
	// of the commands that run a gateway or work at its database
	{journal.ErrLocked, "", "another ibid serve uses this directory; --data DIR gives this one its own"},
	{store.ErrNewer, "", "a newer ibid has changed this database: use that one, or a copy of it from before"},
	{store.ErrUnreachable, "", "is PostgreSQL running there? ibid serve starts without it, and answers wait in the " +
		"journal"},
	{store.ErrFile, "", "put a backup in its place, or move it away with its -wal and -shm: answers that wait in the " +
		"journal are stored then; `sqlite3 FILE .recover` salvages what is left"},
	{syscall.ECONNREFUSED, "", "is it running there?"},
	{server.ErrConfigFile, "", "--config names a YAML file; ibid serve works without one, too"},
	{fs.ErrNotExist, "", "name a file, or - for standard input"},
	{syscall.EISDIR, "", "name the files in the directory"},
}

// newLogger returns the logger of a daemon: JSON lines, or text for a person at a terminal. A quiet one says what is
// wrong.
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
	// Durations are numbers of seconds, as metrics have them; slog's own are nanoseconds.
	o.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration {
			a.Value = slog.Float64Value(a.Value.Duration().Seconds())
		}
		return a
	}
	return slog.New(slog.NewJSONHandler(w, o))
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
