package ibid_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

const modulePath = "github.com/ibidhq/ibid"

// layers are the directories of packages in the order of ARCHITECTURE.md; "." is the root. A package may only import
// packages before it.
var layers = []string{
	"internal/text",
	"internal/scan",
	"internal/frame",
	"internal/passage",
	"internal/wire",
	"internal/call",
	"internal/halt",
	"internal/markdown",
	"internal/prose",
	".",
	"internal/unpack",
	"tee",
	"internal/file",
	"internal/sqlite",
	"biblio",
	"internal/uimessage",
	"export",
	"internal/pdf",
	"snapshot",
	"support",
	"trail",
	"trail/otel",
	"experiment",
	"internal/httpsig",
	"keyring",
	"tlog",
	"manifest",
	"internal/curl",
	"verify",
	"store/journal",
	"store",
	"bus",
	"watch",
	"gateway",
	"internal/httpx",
	"internal/openapi",
	"api",
	"chat",
	"mcp",
	"page",
	"internal/replay",
	"server",
	"cmd/ibid",
}

// besideLayers are outside this order: only tests may import them.
var besideLayers = []string{
	"internal/testenv", // imports no package of the module
	"bus/bustest",      // test suites for implementations of an interface: they import what their package may
	"tlog/tlogtest",
	"server/servertest", // starts a whole ibid for tests
	"verify/verifytest",
	"bench",     // benchmarks that compare packages
	"packaging", // tests of the files for operators
	"examples",  // and directories below it: may import anything
}

// narrowLayers lists packages that may import less of the module than the order allows.
var narrowLayers = map[string][]string{
	"internal/scan":     {},
	"internal/text":     {},
	"internal/halt":     {},
	"internal/markdown": {"internal/halt", "internal/text"},
	"internal/prose":    {"internal/markdown", "internal/text"},
	"internal/file":     {},
	"internal/sqlite":   {"internal/file"},
	"store/journal":     {"internal/file", "internal/sqlite"},
	"internal/pdf":      {},
	"internal/replay":   {"internal/call"},
	"internal/unpack":   {},
	"internal/httpsig":  {},
	"keyring":           {"internal/file", "internal/httpsig"},
	"tlog":              {"internal/file"},
	"tee":               {".", "internal/halt", "internal/unpack"}, // all that a program links which only decodes its client's answers
}

// allowedModules lists what each package may import from outside the standard library: import paths, and all below
// them. Other packages need none. A new line is a decision: state its benefit in ARCHITECTURE.md.
var allowedModules = map[string][]string{
	"internal/prose":    {"github.com/clipperhouse/uax29/v2"},
	"internal/markdown": {"github.com/yuin/goldmark"},
	".": {
		"github.com/clipperhouse/uax29/v2",
		"github.com/go-json-experiment/json",
	},
	"internal/unpack": {
		"github.com/andybalholm/brotli",
		"github.com/klauspost/compress",
	},
	"internal/pdf": {"golang.org/x/text"},
	"snapshot": {
		"github.com/cenkalti/backoff/v5",
		"code.dny.dev/ssrf",
		"github.com/google/uuid",
		"github.com/jimsmart/grobotstxt",
		"github.com/klauspost/compress",
		"github.com/yuin/goldmark",
		"golang.org/x/net",
		"golang.org/x/sync",
		"golang.org/x/text",
	},
	"internal/httpsig": {"github.com/dunglas/httpsfv"},
	"keyring":          {"github.com/go-jose/go-jose/v4", "github.com/go-json-experiment/json"},
	"tlog":             {"golang.org/x/mod/sumdb"},
	"manifest": {
		"github.com/dunglas/httpsfv",
		"github.com/go-json-experiment/json",
		"golang.org/x/net",
	},
	"verify": {
		"github.com/cenkalti/backoff/v5",
		"github.com/go-json-experiment/json",
		"golang.org/x/mod/sumdb",
		"golang.org/x/net",
		"golang.org/x/sync",
	},
	"support":         {"github.com/cenkalti/backoff/v5", "golang.org/x/text"},
	"trail/otel":      {"go.opentelemetry.io/proto/otlp", "google.golang.org/protobuf"},
	"internal/sqlite": {"modernc.org/sqlite"},
	"store": {
		"github.com/cenkalti/backoff/v5",
		"github.com/go-json-experiment/json",
		"github.com/google/uuid",
		"github.com/klauspost/compress",
		"github.com/jackc/pgx/v5",
		"github.com/pressly/goose/v3",
		"golang.org/x/text",
		"modernc.org/sqlite",
	},
	"watch": {"github.com/cenkalti/backoff/v5", "github.com/prometheus/client_golang/prometheus"},
	"bus":   {"github.com/cenkalti/backoff/v5", "github.com/nats-io/nats.go"},
	"gateway": {
		"github.com/cenkalti/backoff/v5",
		"github.com/dunglas/httpsfv",
		"github.com/google/uuid",
		"github.com/klauspost/compress",
		"github.com/prometheus/client_golang/prometheus",
		"go.opentelemetry.io/otel",
		"golang.org/x/net/http/httpguts",
		"golang.org/x/sync",
		"golang.org/x/time",
	},
	"internal/httpx":    {"golang.org/x/sync"},
	"internal/testenv":  {"github.com/google/go-cmp"},
	"bus/bustest":       {"github.com/google/go-cmp"},
	"server/servertest": {"github.com/rogpeppe/go-internal"},
	"api": {
		"github.com/google/uuid",
		"github.com/prometheus/client_golang/prometheus",
		"go.opentelemetry.io/proto/otlp",
		"golang.org/x/sync",
		"google.golang.org/protobuf",
	},
	"chat": {
		"github.com/prometheus/client_golang/prometheus",
		"golang.org/x/sync",
	},
	"mcp": {"github.com/modelcontextprotocol/go-sdk", "golang.org/x/sync"},
	"page": {
		"github.com/google/uuid",
		"github.com/klauspost/compress",
		"golang.org/x/net/idna",
		"golang.org/x/sync",
		"golang.org/x/text",
	},
	"server": {
		"github.com/goccy/go-yaml",
		"github.com/prometheus/client_golang/prometheus",
		"github.com/spf13/pflag",
		"go.opentelemetry.io/otel",
		"go.opentelemetry.io/proto/otlp",
		"golang.org/x/net/http/httpguts",
		"golang.org/x/time",
		"google.golang.org/protobuf",
	},
	"cmd/ibid": {
		"github.com/spf13/cobra",
		"github.com/spf13/pflag",
		"github.com/vbauerster/mpb/v8",
		"golang.org/x/sync",
		"golang.org/x/term",
	},
}

// testModules lists what any test may import in addition.
var testModules = []string{
	"github.com/prometheus/client_golang/prometheus", // reads metrics
	"go.opentelemetry.io/otel",                       // sends traces as a user's program does
	"github.com/andybalholm/brotli",                  // compresses test data
	"github.com/klauspost/compress",
	"go.uber.org/goleak",
	"modernc.org/sqlite", // locks a database
	"github.com/goccy/go-yaml",
	"github.com/google/go-cmp",
	"github.com/rogpeppe/go-internal",
	"github.com/santhosh-tekuri/jsonschema/v6",
	"github.com/yuin/goldmark", // parses rendered output
	"golang.org/x/mod/sumdb",
	"golang.org/x/net/dns/dnsmessage", // names whose addresses change
	"golang.org/x/net/html",
	"golang.org/x/net/http2", // clients that break its rules
}

// ioPackages are the packages of the standard library that packages before tee must not import: they only convert
// bytes, so that a program that imports ibid links no network, database or process code.
var ioPackages = []string{"database/sql", "flag", "log", "net/http", "net/rpc", "net/smtp", "os", "plugin", "unsafe"}

// providerNames are JSON names of a single provider. String literals with them belong in internal/wire and
// internal/call.
var providerNames = []string{
	// Google
	"citationSources", "confidenceScores", "endIndex", "groundingAttributions", "groundingChunk",
	"groundingMetadata", "groundingSupport", "interaction.completed", "place_citation", "retrievedContext",
	"searchEntryPoint", "startIndex", "text_annotation_delta", "urlContextMetadata", "webSearchQueries",
	// OpenAI, Azure, xAI, OpenRouter
	"all_retrieved_documents", "chat.completion.chunk", "container_file_citation", "file_citation", "file_search_call",
	"output_text", "response.completed", "url_citation", "web_search_call",
	// Anthropic
	"char_location", "citations_delta", "content_block_delta", "content_block_location", "encrypted_index",
	"message_stop", "page_location", "search_result_location", "web_search_tool_result",
	// Cohere
	"citation-end", "citation-generation", "citation-start", "citation_options", "document_ids", "message-end",
	"stream-end", "tool_plan",
	// Bedrock
	"citationsContent", "generatedResponsePart", "retrievedReferences", "textResponsePart",
	// Mistral, Perplexity
	"chat.completion.done", "message.output.delta", "reference_ids", "tool_reference",
}

// homonyms are names in our own formats that a provider happens to use too.
var homonyms = map[string][]string{
	"trail":            {"document_ids"}, // step_breakdown in the summary of a run
	"internal/openapi": {"document_ids"},
}

// No package imports a later one.
func TestLayers(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		if !isPlaced(f.dir) {
			t.Errorf("%s: package %s has no layer: add it to layers_test.go and ARCHITECTURE.md",
				f.path, f.dir)
			continue
		}
		for _, imp := range f.imports() {
			if to, ours := strings.CutPrefix(imp+"/", modulePath+"/"); ours {
				to = cmp.Or(strings.TrimSuffix(to, "/"), ".")
				if why := mayImport(f.dir, to); why != "" {
					t.Errorf("%s: %s imports %s: %s", f.path, f.dir, to, why)
				}
			}
		}
	}
}

// No package imports modules that are not allowed.
func TestModules(t *testing.T) {
	for _, f := range goFiles(t) {
		allowed := allowedModules[f.dir]
		if f.test {
			allowed = append(slices.Clone(allowed), testModules...)
		}
		for _, imp := range f.imports() {
			switch {
			case isWithin(imp, []string{modulePath}):
			case strings.Contains(strings.SplitN(imp, "/", 2)[0], "."):
				if !isWithin(imp, allowed) {
					t.Errorf("%s: %s may not import %s; it may import %q", f.path, f.dir, imp, allowed)
				}
			case imp == "unsafe" && f.path == "internal/halt/clock_linux.go": // the only way to read a thread's clock
			case !f.test && beforeTee(f.dir) && (imp == "net" || isWithin(imp, ioPackages)):
				t.Errorf("%s: %s may not import %s: packages before tee do no I/O", f.path, f.dir, imp)
			}
		}
	}
}

// Only internal/wire, internal/call and, for what searches and tools return, internal/passage contain names of a
// provider's JSON.
func TestProviderNames(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test || isWithin(f.dir, []string{"internal/wire", "internal/call", "internal/passage"}) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			for _, name := range providerNames {
				if hasWord(lit.Value, name) && !slices.Contains(homonyms[f.dir], name) {
					t.Errorf("%s: %s is a name of a provider: it belongs in internal/wire or internal/call", f.fset.Position(lit.Pos()), name)
				}
			}
			return true
		})
	}
}

// TestMayImport tests the rule itself, with packages that need not exist.
func TestMayImport(t *testing.T) {
	for _, test := range []struct {
		from, to string
		want     bool
	}{
		{".", "internal/wire", true},
		{"internal/wire", ".", false},
		{"internal/wire", "internal/frame", true},
		{"internal/frame", "internal/wire", false},
		{"tee", ".", true},
		{"tee", "internal/wire", false},
		{"gateway", "tee", true},
		{"gateway", "api", false},
		{"store", "store", true}, // its own external test package
		{"store", "internal/testenv", false},
		{"internal/testenv", ".", false},
		{"bus/bustest", "bus", true},
		{"bus/bustest", "store", true}, // as bus may
		{"bus/bustest", "internal/testenv", true},
		{"bus/bustest", "gateway", false},
		{"bus", "bus/bustest", false},
		{"bench", "store", false},
		{"cmd/ibid", "bench", false},
		{"api", "util", false},
	} {
		if why := mayImport(test.from, test.to); (why == "") != test.want {
			t.Errorf("mayImport(%s, %s) = %q, want allowed: %t", test.from, test.to, why, test.want)
		}
	}
}

func TestHasWord(t *testing.T) {
	for s, want := range map[string]bool{
		`json:"file_citation"`:                   true,
		`{"file_citations":[]}`:                  true,
		"container_file_citation":                false,
		"container_file_citation, file_citation": true,
		"file citation":                          false,
	} {
		if got := hasWord(s, "file_citation"); got != want {
			t.Errorf("hasWord(%s) = %t, want %t", s, got, want)
		}
	}
}

// mayImport returns why package from may not import package to, or "" if it may.
func mayImport(from, to string) string {
	if from == to {
		return ""
	}
	tested := path.Dir(from) // by from, if that is a test suite
	suite := isBeside(from) && tested != "." && slices.Contains(layers, tested)
	if isBeside(to) {
		if suite && to == "internal/testenv" {
			return ""
		}
		return "only tests may import it"
	}
	if isBeside(from) {
		if suite && mayImport(tested, to) == "" || from == "server/servertest" { // which starts all of ibid
			return ""
		}
		return "it is for tests only"
	}
	left, right := slices.Index(layers, to), slices.Index(layers, from)
	if left < 0 {
		return fmt.Sprintf("%s has no layer (layers_test.go)", to)
	}
	if left > right {
		return fmt.Sprintf("%s comes after %s (layers_test.go)", to, from)
	}
	if only, ok := narrowLayers[from]; ok && !slices.Contains(only, to) {
		return fmt.Sprintf("of this module it may only import %q", only)
	}
	return ""
}

func isPlaced(dir string) bool { return slices.Contains(layers, dir) || isBeside(dir) }

func beforeTee(dir string) bool {
	return slices.Contains(layers[:slices.Index(layers, "tee")], dir)
}

func isBeside(dir string) bool { return isWithin(dir, besideLayers) }

// isWithin reports whether name is one of roots or below one.
func isWithin(name string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return name == root || strings.HasPrefix(name, root+"/")
	})
}

// hasWord reports whether name occurs in s at the start of an identifier. Anything may follow: groundingChunk also
// matches groundingChunks.
func hasWord(s, name string) bool {
	for at := 0; ; {
		i := strings.Index(s[at:], name)
		if i < 0 {
			return false
		}
		at += i
		if before := s[:at]; strings.TrimRightFunc(before, isNameRune) == before {
			return true
		}
		at += len(name)
	}
}

func isNameRune(r rune) bool { return r == '_' || unicode.IsLetter(r) }

// goFile is one Go file of the module, parsed.
type goFile struct {
	dir, path string // from the module's root, with slashes
	test      bool   // or a generator, which is not part of its package
	fset      *token.FileSet
	syntax    *ast.File
}

func (f goFile) imports() []string {
	var paths []string
	for _, spec := range f.syntax.Imports {
		if imp, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, imp)
		}
	}
	return paths
}

// goFiles parses all Go files of the module, including those for other systems and build tags, which go list would
// omit.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	fset := token.NewFileSet()
	walkModule(t, ".go", func(name string) {
		syntax, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Errorf("parsing %s: %v", name, err)
			return
		}
		test := strings.HasSuffix(name, "_test.go") || isIgnored(syntax)
		files = append(files, goFile{path.Dir(name), name, test, fset, syntax})
	})
	return files
}

func isIgnored(syntax *ast.File) bool {
	for _, group := range syntax.Comments {
		if group.Pos() < syntax.Package && group.List[0].Text == "//go:build ignore" {
			return true
		}
	}
	return false
}

// walkModule calls f for each file of the module with the extension. Like the go command, it skips testdata, hidden
// directories and nested modules.
func walkModule(t *testing.T, ext string, f func(name string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			if filepath.Ext(name) == ext {
				f(filepath.ToSlash(name))
			}
			return nil
		}
		if name == "." {
			return nil
		}
		_, nested := os.Stat(filepath.Join(name, "go.mod"))
		if nested == nil || name == "out" || // output of make
			d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") {
			return filepath.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
