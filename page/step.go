package page

import (
	"net/http"
	"net/url"
	"strconv"
)

// stepRoutes returns the endpoints that show how an answer was arrived at: runs with their steps, and single sources.
func (p *Page) stepRoutes() map[string]endpoint {
	return map[string]endpoint{
		"GET /ui/runs":                     {handle: p.showRuns},
		"GET /ui/runs/{id}":                {handle: p.showRun},
		"GET /ui/runs/{id}/export":         {handle: p.exportRun},
		"GET /ui/runs/{id}/live":           {handle: p.liveRun},
		"GET /ui/answers/{id}/sources/{n}": {handle: p.showPanel},
		"GET /ui/copies/{hash}":            {handle: p.saveCopy},
	}
}

// runURL returns the address of the page of a run.
func runURL(id string) string { return "/ui/runs/" + url.PathEscape(id) }

// answerURL returns the address of the page of an answer.
func answerURL(id string) string { return "/ui/answers/" + url.PathEscape(id) }

// exportRun hands a run out as a file, in the forms of GET /v1/runs/{id}/summary.
func (p *Page) exportRun(w http.ResponseWriter, r *request) error {
	as := r.URL.Query().Get("as")
	name, mediaType := "run.json", "application/json"
	switch as {
	case "", "json":
	case "prov":
		name = "run.prov.json"
	case "otlp":
		name = "run.otlp.json"
	default:
		return badRequest("A run cannot be written like that.", "as is json, prov or otlp.")
	}
	id, err := idOf(r)
	if err != nil {
		return err
	}
	body, err := p.o.API.ExportRun(r.Context(), r.who.Tenant, id, as)
	if err != nil {
		return err
	}
	writeFile(w, r, name, mediaType, body)
	return nil
}

// readNumber returns a parameter that counts something from 1; 0: it is not there. Anything else is not there either:
// links that somebody mended by hand still show the page.
func readNumber(r *request, name string) int {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// usesURL returns the address of the page with all answers that use a source.
func usesURL(key string) string {
	if len(key) > maxAsking {
		return "" // it cannot be asked for
	}
	return "/ui/sources?key=" + url.QueryEscape(key)
}
