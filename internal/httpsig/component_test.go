package httpsig_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/httpsig"
)

// The value of each kind of component in the base. The cases of fields and query parameters are those of RFC 9421 §2.
func TestComponents(t *testing.T) {
	request := &httpsig.Message{
		Method:    "GET",
		TargetURI: "https://WWW.example.com:443/path?param=value&foo=bar&baz=batman&qux=&var=this%20is%20a%20big%0Amultiline%20value&bar=with+plus+whitespace&fa%C3%A7ade%22%3A%20=something&t=*~",
		Header: http.Header{
			"X-Ows-Header":          {"   Leading and trailing whitespace.    "},
			"X-Obs-Fold-Header":     {"Obsolete\r\n    line folding."},
			"X-Folds":               {"a \r\n\tb\n c"},
			"Cache-Control":         {"max-age=60", "   must-revalidate"},
			"Example-Dict":          {" a=1,    b=2;x=1;y=2,   c=(a   b    c), d"},
			"X-Empty-Header":        {""},
			"Example-Header":        {"value, with, lots", "of, commas"},
			"Priority":              {"u=1 ,\t i=?1"},
			"Cache-Status":          {`"a";hit,b; fwd=miss`},
			"Client-Cert":           {"  :aGVyb24=:"},
			"Signature-Agent":       {`one="https://a.example" , two="https://b.example"`},
			"X-Tab":                 {"a\tb"},
			"!#$%&'*+-.^_`|~x":      {"odd"},
			"X-With-Obs-Text-Quote": {`"` + "\\\"" + `"`},
		},
		Trailer: http.Header{"Expires": {"Wed, 9 Nov 2022 07:28:00 GMT"}},
	}
	response := &httpsig.Message{Status: 503, Header: http.Header{"Content-Type": {"text/plain"}}, Request: request}
	for _, test := range []struct {
		m    *httpsig.Message
		c    httpsig.Component
		want string
	}{
		{request, httpsig.Component{Name: "@method"}, `"@method": GET`},
		{request, httpsig.Component{Name: "@target-uri"}, `"@target-uri": ` + request.TargetURI},
		{request, httpsig.Component{Name: "@authority"}, `"@authority": www.example.com`},
		{request, httpsig.Component{Name: "@scheme"}, `"@scheme": https`},
		{request, httpsig.Component{Name: "@path"}, `"@path": /path`},
		{request, httpsig.Component{Name: "@query"}, `"@query": ` + request.TargetURI[strings.IndexByte(request.TargetURI, '?'):]},
		{request, httpsig.Component{Name: "@request-target"}, `"@request-target": ` + request.TargetURI[strings.Index(request.TargetURI, "/path"):]},
		{request, httpsig.Component{Name: "@query-param", QueryName: "baz"}, `"@query-param";name="baz": batman`},
		{request, httpsig.Component{Name: "@query-param", QueryName: "qux"}, `"@query-param";name="qux": `},
		{request, httpsig.Component{Name: "@query-param", QueryName: "var"}, `"@query-param";name="var": this%20is%20a%20big%0Amultiline%20value`},
		{request, httpsig.Component{Name: "@query-param", QueryName: "bar"}, `"@query-param";name="bar": with%20plus%20whitespace`},
		{request, httpsig.Component{Name: "@query-param", QueryName: "fa%C3%A7ade%22%3A%20"}, `"@query-param";name="fa%C3%A7ade%22%3A%20": something`},
		{request, httpsig.Component{Name: "@query-param", QueryName: "t"}, `"@query-param";name="t": *%7E`},
		{request, httpsig.Component{Name: "x-ows-header"}, `"x-ows-header": Leading and trailing whitespace.`},
		{request, httpsig.Component{Name: "x-obs-fold-header"}, `"x-obs-fold-header": Obsolete line folding.`},
		{request, httpsig.Component{Name: "x-folds"}, `"x-folds": a b c`},
		{request, httpsig.Component{Name: "cache-control"}, `"cache-control": max-age=60, must-revalidate`},
		{request, httpsig.Component{Name: "example-dict"}, `"example-dict": a=1,    b=2;x=1;y=2,   c=(a   b    c), d`},
		{request, httpsig.Component{Name: "x-empty-header"}, `"x-empty-header": `},
		{request, httpsig.Component{Name: "x-tab"}, "\"x-tab\": a\tb"},
		{request, httpsig.Component{Name: "!#$%&'*+-.^_`|~x"}, "\"!#$%&'*+-.^_`|~x\": odd"},
		{request, httpsig.Component{Name: "example-dict", Key: "a"}, `"example-dict";key="a": 1`},
		{request, httpsig.Component{Name: "example-dict", Key: "b"}, `"example-dict";key="b": 2;x=1;y=2`},
		{request, httpsig.Component{Name: "example-dict", Key: "c"}, `"example-dict";key="c": (a b c)`},
		{request, httpsig.Component{Name: "example-dict", Key: "d"}, `"example-dict";key="d": ?1`},
		{request, httpsig.Component{Name: "signature-agent", Key: "two"}, `"signature-agent";key="two": "https://b.example"`},
		{request, httpsig.Component{Name: "priority", SF: true}, `"priority";sf: u=1, i`},
		{request, httpsig.Component{Name: "cache-status", SF: true}, `"cache-status";sf: "a";hit, b;fwd=miss`},
		{request, httpsig.Component{Name: "client-cert", SF: true}, `"client-cert";sf: :aGVyb24=:`},
		{request, httpsig.Component{Name: "example-header", ByteSeq: true}, `"example-header";bs: :dmFsdWUsIHdpdGgsIGxvdHM=:, :b2YsIGNvbW1hcw==:`},
		{request, httpsig.Component{Name: "expires", Trailer: true}, `"expires";tr: Wed, 9 Nov 2022 07:28:00 GMT`},
		{response, httpsig.Component{Name: "@status"}, `"@status": 503`},
		{response, httpsig.Component{Name: "content-type"}, `"content-type": text/plain`},
		{response, httpsig.Component{Name: "@method", Request: true}, `"@method";req: GET`},
		{response, httpsig.Component{Name: "example-dict", Key: "a", Request: true}, `"example-dict";key="a";req: 1`},
		{response, httpsig.Component{Name: "expires", Trailer: true, Request: true}, `"expires";tr;req: Wed, 9 Nov 2022 07:28:00 GMT`},
	} {
		text, err := httpsig.Base(test.m, &httpsig.Params{Components: []httpsig.Component{test.c}})
		got, _, _ := strings.Cut(string(text), "\n")
		if err != nil || got != test.want {
			t.Errorf("%+v:\n got %s, %v\nwant %s", test.c, got, err, test.want)
		}
	}
}

// The pieces of a target URI.
func TestTarget(t *testing.T) {
	for _, test := range []struct{ uri, authority, path, query, target string }{
		{"https://example.com", "example.com", "/", "?", "/"},
		{"http://example.com:80?", "example.com", "/", "?", "/?"},
		{"http://example.com:443/", "example.com:443", "/", "?", "/"},
		{"HTTPS://EXAMPLE.com:/A%2fb/./c?x=/?y", "example.com", "/A%2fb/./c", "?x=/?y", "/A%2fb/./c?x=/?y"},
		{"https://[2001:DB8::1]:8443/a;b=c", "[2001:db8::1]:8443", "/a;b=c", "?", "/a;b=c"},
	} {
		m := &httpsig.Message{Method: "GET", TargetURI: test.uri}
		text, err := httpsig.Base(m, &httpsig.Params{Components: components("@authority", "@path", "@query", "@request-target")})
		want := `"@authority": ` + test.authority + "\n\"@path\": " + test.path + "\n\"@query\": " + test.query +
			"\n\"@request-target\": " + test.target + "\n\"@signature-params\": (\"@authority\" \"@path\" \"@query\" \"@request-target\")"
		if diff := cmp.Diff(want, string(text)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", test.uri, err, diff)
		}
	}
	for about, uri := range map[string]string{
		"empty": "", "a path": "/a", "no host": "https:///a", "only a port": "https://:443/", "opaque": "https:a", "another scheme": "ftp://a.example/",
		"user": "https://me@a.example/", "empty user": "https://@a.example/", "fragment": "https://a.example/#a", "empty fragment": "https://a.example/#",
		"letter": "https://a.example/ä", "space": "https://a.example/ a", "line break": "https://a.example/\n", "quote": `https://a.example/"a`, "pipe": "https://a.example/?a|b", "half a percent": "https://a.example/%a",
	} {
		for _, name := range []string{"@target-uri", "@authority", "@method"} {
			m := &httpsig.Message{Method: "GET", TargetURI: uri}
			if text, err := httpsig.Base(m, &httpsig.Params{Components: components(name)}); err == nil {
				t.Errorf("%s: %q has the base %s", about, uri, text)
			}
		}
	}
}

// A component that is absent, unknown or ambiguous is refused, and never treated as empty.
func TestComponentRefused(t *testing.T) {
	request := &httpsig.Message{
		Method:    "GET",
		TargetURI: "https://a.example/a?twice=1&twice=2&bad=%zz&raw=%ff",
		Header: http.Header{
			"X-Break":    {"a\nb: c"},
			"X-Return":   {"a\rb"},
			"X-Half":     {"a\r\r\n b"},
			"X-End":      {"a\r\n"},
			"X-Letter":   {"ä"},
			"X-Nul":      {"a\x00b"},
			"X-Nobody":   {},
			"X-Dict":     {"a=1, b=2, a=3"},
			"X-Params":   {"a;p=1;p=2"},
			"X-Spelling": {"a=?1"},
			"X-Text":     {"a b c"},
			"Priority":   {"u=1="},
			"Lower":      {"a"},
		},
		Trailer: http.Header{"Expires": {"never"}},
	}
	response := &httpsig.Message{Status: 200, Header: request.Header}
	answer := &httpsig.Message{Status: 200, Request: request}
	for about, test := range map[string]struct {
		m *httpsig.Message
		c httpsig.Component
	}{
		"absent field":                  {request, httpsig.Component{Name: "etag"}},
		"field without lines":           {request, httpsig.Component{Name: "x-nobody"}},
		"line break":                    {request, httpsig.Component{Name: "x-break"}},
		"carriage return":               {request, httpsig.Component{Name: "x-return"}},
		"carriage return before a fold": {request, httpsig.Component{Name: "x-half"}},
		"line break at the end":         {request, httpsig.Component{Name: "x-end"}},
		"line break, bs":                {request, httpsig.Component{Name: "x-break", ByteSeq: true}},
		"letter":                        {request, httpsig.Component{Name: "x-letter"}},
		"control character":             {request, httpsig.Component{Name: "x-nul"}},
		"upper case":                    {request, httpsig.Component{Name: "Lower"}},
		"no name":                       {request, httpsig.Component{}},
		"name with a line break":        {request, httpsig.Component{Name: "a\nb"}},
		"name with a quote":             {request, httpsig.Component{Name: `a"b`}},
		"unknown derived":               {request, httpsig.Component{Name: "@body"}},
		"signature-params":              {request, httpsig.Component{Name: "@signature-params"}},
		"derived, sf":                   {request, httpsig.Component{Name: "@method", SF: true}},
		"derived, bs":                   {request, httpsig.Component{Name: "@method", ByteSeq: true}},
		"derived, key":                  {request, httpsig.Component{Name: "@method", Key: "a"}},
		"derived, tr":                   {request, httpsig.Component{Name: "@method", Trailer: true}},
		"derived, name":                 {request, httpsig.Component{Name: "@method", QueryName: "a"}},
		"field, name":                   {request, httpsig.Component{Name: "x-text", QueryName: "a"}},
		"status of a request":           {request, httpsig.Component{Name: "@status"}},
		"status, req":                   {answer, httpsig.Component{Name: "@status", Request: true}},
		"method of a response":          {response, httpsig.Component{Name: "@method"}},
		"target of a response":          {answer, httpsig.Component{Name: "@target-uri"}},
		"req of a request":              {request, httpsig.Component{Name: "@method", Request: true}},
		"req, no request":               {response, httpsig.Component{Name: "@target-uri", Request: true}},
		"req of a field, no request":    {response, httpsig.Component{Name: "x-text", Request: true}},
		"req, absent field":             {answer, httpsig.Component{Name: "etag", Request: true}},
		"req, empty request":            {&httpsig.Message{Status: 200, Request: &httpsig.Message{}}, httpsig.Component{Name: "@target-uri", Request: true}},
		"req, a response":               {&httpsig.Message{Status: 200, Request: answer}, httpsig.Component{Name: "@method", Request: true}},
		"req, nested":                   {&httpsig.Message{Status: 200, Request: &httpsig.Message{Request: request}}, httpsig.Component{Name: "@method", Request: true}},
		"request and response":          {&httpsig.Message{Status: 200, Method: "GET"}, httpsig.Component{Name: "@status"}},
		"status of two digits":          {&httpsig.Message{Status: 20}, httpsig.Component{Name: "@status"}},
		"status of four digits":         {&httpsig.Message{Status: 2000}, httpsig.Component{Name: "@status"}},
		"negative status":               {&httpsig.Message{Status: -1}, httpsig.Component{Name: "@status"}},
		"no method":                     {&httpsig.Message{TargetURI: "https://a.example/"}, httpsig.Component{Name: "@method"}},
		"method with a space":           {&httpsig.Message{Method: "GET /", TargetURI: "https://a.example/"}, httpsig.Component{Name: "@method"}},
		"target of CONNECT":             {&httpsig.Message{Method: "CONNECT", TargetURI: "https://a.example/"}, httpsig.Component{Name: "@request-target"}},
		"target of OPTIONS":             {&httpsig.Message{Method: "OPTIONS", TargetURI: "https://a.example/"}, httpsig.Component{Name: "@request-target"}},
		"tr, only in the header":        {request, httpsig.Component{Name: "x-text", Trailer: true}},
		"header, only in the trailer":   {request, httpsig.Component{Name: "expires"}},
		"bs and sf":                     {request, httpsig.Component{Name: "x-text", ByteSeq: true, SF: true}},
		"bs and key":                    {request, httpsig.Component{Name: "x-dict", ByteSeq: true, Key: "b"}},
		"sf of an unknown type":         {request, httpsig.Component{Name: "x-dict", SF: true}},
		"sf, malformed":                 {request, httpsig.Component{Name: "priority", SF: true}},
		"key of no dictionary":          {request, httpsig.Component{Name: "x-text", Key: "a"}},
		"key that is absent":            {request, httpsig.Component{Name: "x-dict", Key: "z"}},
		"key that occurs twice":         {request, httpsig.Component{Name: "x-dict", Key: "a"}},
		"key beside one that does":      {request, httpsig.Component{Name: "x-dict", Key: "b"}},
		"parameter that occurs twice":   {request, httpsig.Component{Name: "x-params", Key: "a"}},
		"other spelling":                {request, httpsig.Component{Name: "x-spelling", Key: "a"}},
		"query-param without name":      {request, httpsig.Component{Name: "@query-param"}},
		"query-param, absent":           {request, httpsig.Component{Name: "@query-param", QueryName: "z"}},
		"query-param, twice":            {request, httpsig.Component{Name: "@query-param", QueryName: "twice"}},
		"query-param, undecodable":      {request, httpsig.Component{Name: "@query-param", QueryName: "bad"}},
		"query-param, not UTF-8":        {request, httpsig.Component{Name: "@query-param", QueryName: "raw"}},
	} {
		if text, err := httpsig.Base(test.m, &httpsig.Params{Components: []httpsig.Component{test.c}}); err == nil {
			t.Errorf("%s: the base is %q", about, text)
		} else if !strings.HasPrefix(err.Error(), "making the base of a signature: ") {
			t.Errorf("%s: %v", about, err)
		}
	}
}

func base64Of(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func TestCheckDigest(t *testing.T) {
	// The examples of RFC 9530, appendix B and D: the body includes its line end.
	const (
		body   = "{\"hello\": \"world\"}\n"
		sha256 = "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:"
		sha512 = "sha-512=:YMAam51Jz/jOATT6/zvHrLVgOYTGFy1d6GJiOHTohq4yP+pgk4vf2aCsyRZOtw8MjkM7iw7yZ/WkppmM44T3qg==:"
	)
	if got := httpsig.ContentDigest([]byte(body)); got != sha256 {
		t.Errorf("ContentDigest = %s, want %s", got, sha256)
	}
	for about, test := range map[string]struct {
		field []string
		ok    bool
	}{
		"sha-256":                {[]string{sha256}, true},
		"sha-512":                {[]string{sha512}, true},
		"both":                   {[]string{sha256 + ", " + sha512}, true},
		"both in lines":          {[]string{" " + sha512 + "\t", sha256}, true},
		"with an unknown":        {[]string{"md5=:AAAA:, " + sha256 + ", crc=1"}, true},
		"folded":                 {[]string{sha256 + ",\r\n " + sha512}, true},
		"none":                   {nil, false},
		"empty":                  {[]string{""}, false},
		"only unknown":           {[]string{"md5=:AAAA:"}, false},
		"another":                {[]string{httpsig.ContentDigest([]byte("heron"))}, false},
		"one right":              {[]string{sha256 + ", sha-512=:AAAA:"}, false},
		"the other right":        {[]string{sha512 + ", sha-256=:AAAA:"}, false},
		"twice, the last right":  {[]string{httpsig.ContentDigest(nil) + ", " + sha256}, false},
		"twice, the first right": {[]string{sha256, httpsig.ContentDigest(nil)}, false},
		"text":                   {[]string{strings.ReplaceAll(sha256, ":", `"`)}, false},
		"a list":                 {[]string{strings.Replace(sha256, "=:", "=(:", 1) + ")"}, false},
		"half":                   {[]string{"sha-256=:RK/0qy18MlBSVnWgjwz6lQ==:"}, false},
		"no dictionary":          {[]string{"SHA-256=" + sha256[8:]}, false},
		"line break":             {[]string{sha256 + "\n" + sha512}, false},
		"long":                   {[]string{sha256 + ", md5=:" + strings.Repeat("AAAA", httpsig.MaxField/4) + ":"}, false},
	} {
		if err := httpsig.CheckDigest(test.field, []byte(body)); (err == nil) != test.ok {
			t.Errorf("%s: %v", about, err)
		}
		want := test.ok && strings.Contains(strings.Join(test.field, ""), "sha-256=")
		if err := httpsig.CheckDigest(test.field, []byte(body), "sha-256"); (err == nil) != want {
			t.Errorf("%s, with sha-256: %v", about, err)
		}
	}
}

// Endless line folds are harmless, and cost no more than their bytes.
func TestFolds(t *testing.T) {
	folds := "a=1" + strings.Repeat("\n ", 1<<19)
	if list, err := httpsig.Parse(&httpsig.Message{Header: http.Header{"Signature-Input": {folds}, "Signature": {"a=:AAAA:"}}}); err == nil {
		t.Errorf("a field of %d bytes is read: %d signatures", len(folds), len(list))
	}
	if err := httpsig.CheckDigest([]string{folds}, nil); err == nil {
		t.Error("a digest of that length is read")
	}
	for length, ok := range map[int]bool{httpsig.MaxField: true, httpsig.MaxField + 1: false, len(folds): false} {
		value := "a" + strings.Repeat("\n ", (length-2)/2)
		value += strings.Repeat("b", length-len(value))
		m := &httpsig.Message{Method: "GET", TargetURI: "https://a.example/", Header: http.Header{"X-Folds": {value}}}
		text, err := httpsig.Base(m, &httpsig.Params{Components: components("x-folds")})
		if (err == nil) != ok {
			t.Errorf("%d bytes: %v", length, err)
		}
		if ok && !strings.HasPrefix(string(text), `"x-folds": a`+strings.Repeat(" ", (length-2)/2)+"b") {
			t.Errorf("the base is %.40q…", text)
		}
	}
}
