package page

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"mime"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/unpack"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

//go:embed templates
var templateFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// policy is the content security policy of all pages: nothing from other origins, nothing inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; frame-src 'self'; base-uri 'none'; frame-ancestors 'none'"

// headers are sent with all responses. A handler may set others.
var headers = map[string]string{
	"Content-Security-Policy":    policy,
	"X-Content-Type-Options":     "nosniff",
	"Referrer-Policy":            "same-origin",
	"Cross-Origin-Opener-Policy": "same-origin",
	"X-DNS-Prefetch-Control":     "off", // looking a name up would reveal that somebody reads this
	"Cache-Control":              "no-store",
}

// view is a page's content and what the layout shows around it.
type view struct {
	Name    string // of the template of the content: templates/NAME.html
	Status  int    // of the response; 0 for 200
	Title   string // of the window and, unless the content has its own, the page
	Section string // the entry of the navigation that the page is under: "overview", "answers", "runs", …
	Query   string // the search words
	Body    any    // the data of the page's own template

	Version string // this and the rest are set by show
	Public  bool   // no token is needed
	Reader  bool   // the caller may read, so that the navigation is useful
	CanAsk  bool   // questions can be asked
}

// InMore reports whether the page is under a folded entry of the navigation.
func (v *view) InMore() bool {
	return slices.Contains([]string{"alerts", "incidents", "overview", "experiments", "feedback"}, v.Section)
}

// navEntry is an entry of the navigation: its path below /ui/, and whether the page is under it.
type navEntry struct {
	At, Word string
	Current  bool
}

// statusRejected is the status of a page whose form was not accepted.
const statusRejected = http.StatusUnprocessableEntity

// show writes a page as HTML, compressed if the client accepts that. On error nothing is written.
func (p *Page) show(w *httpx.Reply, r *httpx.Request, v *view) error {
	v.Version, v.CanAsk, v.Reader = p.o.Version, p.o.Chat != nil, r.Who.Tenant != ""
	v.Public = v.Reader && r.Who.Token == ""
	html, err := p.fragment(v.Name, "layout", v)
	if err == nil {
		writeBody(w, r, &response{status: cmp.Or(v.Status, http.StatusOK), mediaType: mediaHTML, body: html})
	}
	return err
}

// fragment returns a part of a page as HTML.
func (p *Page) fragment(page, name string, body any) ([]byte, error) {
	t := p.views[page]
	if t == nil {
		return nil, fmt.Errorf("showing the page %q: there is no template", page)
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, name, body); err != nil {
		return nil, fmt.Errorf("showing the page %q: %w", page, err)
	}
	return b.Bytes(), nil
}

const mediaHTML = "text/html; charset=utf-8"

// response is a response whose body is known.
type response struct {
	status    int
	mediaType string
	body      []byte
	packed    map[string][]byte // the body in content codings; those missing are made when needed
}

// worthPacking is the size from which on a body is compressed.
const worthPacking = 1 << 10

func writeBody(w *httpx.Reply, r *httpx.Request, res *response) {
	w.Header().Add("Vary", "Accept-Encoding")
	body := res.body
	if coding := codingFor(r, body); coding != "" {
		packed, ok := res.packed[coding]
		if !ok {
			packed = pack(coding, body, gzip.BestSpeed)
		}
		if packed != nil {
			body = packed
			w.Header().Set("Content-Encoding", coding)
		}
	}
	w.Body(res.status, res.mediaType, body)
}

// codings are the content codings of pages, the best first.
var codings = []string{"zstd", "gzip"}

// codingFor returns the coding in which a body is sent, or an empty string for none: the best of those that the client
// likes most.
func codingFor(r *httpx.Request, body []byte) string {
	if len(body) < worthPacking {
		return ""
	}
	accepted := r.Header.Get("Accept-Encoding")
	best, most := "", 0.0
	for _, coding := range codings {
		if q := weightOf(coding, accepted); q > most {
			best, most = coding, q
		}
	}
	return best
}

// weightOf returns the weight of a coding in an Accept-Encoding, 0 if it is not accepted.
func weightOf(coding, accepted string) float64 {
	for item := range strings.SplitSeq(accepted, ",") {
		name, weight, _ := strings.Cut(item, ";")
		if strings.EqualFold(strings.TrimSpace(name), coding) {
			_, q, weighted := strings.Cut(weight, "=")
			if !weighted {
				return 1
			}
			n, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}

// zstdPacker compresses pages. Its window is far below the 8 MiB that every client has to accept (RFC 9659).
var zstdPacker = unpack.NewPacker(zstd.SpeedDefault, 1<<20, 0)

// pack returns a body in one of the codings; level is that of gzip.
func pack(coding string, body []byte, level int) []byte {
	if coding == "zstd" {
		return zstdPacker.Pack(body, math.MaxInt)
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, level)
	if err != nil {
		return nil
	}
	_, _ = z.Write(body) // a buffer accepts everything
	_ = z.Close()
	return b.Bytes()
}

// asset is a file that pages load.
type asset struct {
	response

	tag string // its hash, which is part of the address that pages load it from
}

// readAssets reads the files of assets/. Those of css/ and js/ are joined, in the order of their names, to page.css and
// page.js.
func readAssets() (map[string]asset, error) {
	bodies := map[string][]byte{}
	err := fs.WalkDir(assetFiles, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := assetFiles.ReadFile(name)
		to := strings.TrimPrefix(name, "assets/")
		switch path.Dir(to) {
		case "css":
			to = "page.css"
		case "js":
			to = "page.js"
		}
		bodies[to] = append(bodies[to], body...)
		return err
	})
	all := map[string]asset{}
	for name, body := range bodies {
		sum := sha256.Sum256(body)
		res := response{http.StatusOK, assetType(name), body, map[string][]byte{}}
		for _, coding := range codings {
			res.packed[coding] = pack(coding, body, gzip.BestCompression)
		}
		all[name] = asset{res, hex.EncodeToString(sum[:8])}
	}
	return all, err
}

// assetType returns the media type of an asset, independent of the system's tables.
func assetType(name string) string {
	return map[string]string{
		".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
	}[path.Ext(name)]
}

// readViews parses the templates: each file of templates/ with the layout and the files of templates/parts.
func readViews(assets map[string]asset) (map[string]*template.Template, error) {
	base := template.New("").Funcs(funcs(assets))
	base, err := base.ParseFS(templateFiles, "templates/layout.html", "templates/parts/*.html")
	if err != nil {
		return nil, err
	}
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, err
	}
	all := map[string]*template.Template{}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if name == "layout" {
			continue
		}
		t, err := base.Clone()
		if err == nil {
			t, err = t.ParseFS(templateFiles, file)
		}
		if err != nil {
			return nil, err
		}
		all[name] = t
	}
	return all, nil
}

// funcs returns the functions that templates can call.
func funcs(assets map[string]asset) template.FuncMap {
	return template.FuncMap{
		"asset": func(name string) (string, error) {
			a, ok := assets[name]
			if !ok {
				return "", fmt.Errorf("there is no asset %q", name)
			}
			return "/ui/assets/" + name + "?v=" + a.tag, nil
		},
		"clock":      func(t time.Time) string { return t.UTC().Format("15:04 UTC") },
		"day":        day,
		"first":      first,
		"firstCall":  firstCallOf,
		"moment":     moment,
		"legend":     func() []badge { return legend },
		"iso":        func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"count":      counted,
		"nav":        func(at, word, section string) navEntry { return navEntry{at, word, at == section} },
		"numbers":    joinNumbers,
		"percent":    percent,
		"pieces":     piecesHTML,
		"plain":      plainWords,
		"long":       long,
		"more":       func(all, shown any) int { return reflect.ValueOf(all).Len() - reflect.ValueOf(shown).Len() },
		"text":       shownText,
		"stepWords":  stepWords,
		"where":      placeWords,
		"place":      func(index int) int { return index + 1 },
		"score":      score,
		"shortWords": func(s string) string { return short(s, maxAtOnce) },
		"took":       took,

		"finding": func(n int, kind, word string) countedBadge {
			return countedBadge{badge{Kind: kind, Word: word}, n}
		},

		"capital":   capital,
		"slug":      slug,
		"label":     label,
		"line":      line,
		"names":     func(list []string) string { return line(strings.Join(list, ", ")) },
		"origin":    originWords,
		"published": published,
		"relevance": func(v *float64) string { return strconv.FormatFloat(*v, 'g', 3, 64) },
		"shown":     shownAddress,
		"shortHash": shortHash,
		"site":      func(address string) string { return siteOf(&ibid.Source{URL: address}) },
		"verdict":   verdictWords,
		"words":     func(s any) string { return words(fmt.Sprint(s)) },

		"difference": differenceWords,
		"interval":   intervalOf,
		"int":        func(n int64) int { return int(n) },
		"level":      levelWords,
		"compared":   comparedWords,
		"ago":        func(t time.Time) string { return ago(time.Since(t)) },
		"when":       whenWords,
		"signed":     signedWords,
		"reported":   reportedSourceOf,

		"alertBadge":    func(a store.Alert) badge { return alertBadge(&a) },
		"claimBadge":    claimBadge,
		"incidentBadge": incidentBadge,
		"statusBadge":   statusBadge,

		"answerURL":       answerURL,
		"conversationURL": conversationURL,
		"feedbackURL":     feedbackURL,
		"incidentURL":     func(in *verify.Incident) string { return "/ui/incidents/" + store.IncidentKey(in) },
		"open":            func(address string) string { return openURL(&ibid.Source{URL: address}) },
		"openURL":         openURL,
		"runURL":          runURL,
		"sourceKeyURL":    sourceKeyURL,
		"sourceURL":       sourceURL,
	}
}

// first returns the first n elements of a slice.
func first(n int, list any) any {
	v := reflect.ValueOf(list)
	return v.Slice(0, min(n, v.Len())).Interface()
}

// joinNumbers returns numbers with spaces between them.
func joinNumbers(numbers []int) string { return strings.Trim(fmt.Sprint(numbers), "[]") }

// capital returns words, which begin with an ASCII letter, with a capital letter.
func capital(words string) string { return strings.ToUpper(words[:1]) + words[1:] }

// asset serves a file that pages load. Its address contains its hash, so that it can be cached forever.
func (p *Page) asset(w *httpx.Reply, r *httpx.Request) error {
	a, ok := p.assets[r.PathValue("name")]
	if !ok {
		return errNotFound
	}
	if r.URL.Query().Get("v") == a.tag {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	a.serve(w, r)
	return nil
}

// element serves the custom element, which other sites' pages load too.
func (p *Page) element(w *httpx.Reply, r *httpx.Request) error {
	h := w.Header()
	for name, value := range headers {
		h.Set(name, value)
	}
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Cache-Control", "public, max-age=3600")
	p.assets["ibid.js"].serve(w, r)
	return nil
}

func (p *Page) icon(w *httpx.Reply, r *httpx.Request) error {
	w.Header().Set("Cache-Control", "public, max-age=86400")
	p.assets["icon.svg"].serve(w, r)
	return nil
}

// serve writes an asset, unless the client has it cached.
func (a asset) serve(w *httpx.Reply, r *httpx.Request) {
	tag := `"` + a.tag + `"`
	if coding := codingFor(r, a.body); coding != "" {
		tag = `"` + a.tag + "-" + coding + `"` // other bytes
	}
	w.Header().Set("ETag", tag)
	if known := strings.TrimSpace(r.Header.Get("If-None-Match")); known == "*" || strings.Contains(known, tag) {
		w.Header().Add("Vary", "Accept-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	writeBody(w, r, &a.response)
}

// writeFile sends a file to be saved.
func writeFile(w *httpx.Reply, r *httpx.Request, name, mediaType string, body []byte) {
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	writeBody(w, r, &response{status: http.StatusOK, mediaType: mediaType, body: body})
}

// readForm reads a posted form.
func readForm(w *httpx.Reply, r *httpx.Request) error {
	defer readInTime(w)()
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return httpx.BadRequest("The form cannot be read.", "It may be too long, or have taken too long to arrive.")
	}
	return nil
}

// formTime is how long a request body may take to arrive.
const formTime = time.Minute

// readInTime limits the rest of a request to [formTime]. The returned function lifts the limit and must be called, as
// processing the form may take longer.
func readInTime(w http.ResponseWriter) (end func()) {
	rc := http.NewResponseController(w)
	// A writer without a connection has no deadline, and no one waiting for it.
	_ = rc.SetReadDeadline(time.Now().Add(formTime))
	return func() { _ = rc.SetReadDeadline(time.Time{}) }
}

// maxForm is the maximum size of a form in bytes. Pasted text to verify may be larger, and has its own limit.
const maxForm = 1 << 20
