package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/support"
)

const (
	// maxCheck limits the bytes of claims and what they are checked against, before and after decompression.
	maxCheck = 16 << 20
	// maxClaims limits the claims of one request.
	maxClaims = 10_000
	// checkMemory is how many bytes of memory each byte of what is checked or attributed takes besides itself.
	checkMemory = 12
)

// maxReason limits the characters of what is wrong with a body, which may repeat some of it.
const maxReason = 200

// asLines is the media type of JSON lines.
const asLines = "application/jsonl"

// claimHint is the hint for bodies that are not claims.
const claimHint = `send {"claim": "…", "passages": ["…"]}, or {"claim": "…", "sources": [{"id": "…", "text": "…"}]}; ` +
	"for many claims, one such object per line"

// check reports whether passages support claims.
func (a *API) check(w *httpx.Reply, r *httpx.Request) error {
	body, release, err := a.readWork(w, r, maxCheck, checkMemory)
	if err != nil {
		return err
	}
	defer release()
	claims, many, err := readClaims(body)
	if err != nil {
		return err
	}
	reports, err := claims.Check(r.Context(), a.checker)
	if err != nil {
		return err
	}
	var out []byte
	for _, report := range reports {
		line, err := report.Encode()
		if err != nil {
			return err
		}
		out = append(out, line...)
	}
	if many {
		w.Body(http.StatusOK, asLines, out)
		return nil
	}
	w.Body(http.StatusOK, "application/json", out)
	return nil
}

// readWork reads a body, and reserves the memory that processing it takes. The error is a problem, and leaves nothing
// to release.
func (a *API) readWork(
	w *httpx.Reply, r *httpx.Request, limit, memory int64,
) (body []byte, release func(), err error) {
	body, read, err := a.bodies.Read(w, r, limit)
	if err != nil {
		return nil, nil, err
	}
	processed, err := a.bodies.HoldWork(r.Who, len(body), memory)
	if err != nil {
		read()
		return nil, nil, err
	}
	return body, func() {
		processed()
		read()
	}, nil
}

// readClaims reads one claim as a JSON object, of which nothing may be wrong, or many as lines: a bad line gets an
// error of its own, unless all are.
func readClaims(body []byte) (claims *support.Claims, many bool, err error) {
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	claims = &support.Claims{}
	if first, rest := nextLine(bytes.TrimSpace(body)); len(bytes.TrimSpace(rest)) == 0 || isObject(body) {
		if len(first) == 0 {
			return nil, false, httpx.BadRequest("the body is empty", claimHint)
		}
		q, err := support.ReadClaim(body, true)
		if err != nil {
			return nil, false, httpx.BadRequest(text.Line(err.Error(), maxReason), claimHint)
		}
		claims.Add(q)
		return claims, false, nil
	}
	for number := 1; len(body) > 0; number++ {
		var line []byte
		if line, body = nextLine(body); len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if all, _ := claims.Len(); all == maxClaims {
			return nil, false, gateway.NewProblem(gateway.CodeTooLarge,
				fmt.Sprintf("the body has more than %d lines", maxClaims), "send it in several parts")
		}
		claims.AddLine(line, number)
	}
	if _, readable := claims.Len(); readable == 0 {
		return nil, false, httpx.BadRequest("no line of the body is a claim", claimHint)
	}
	return claims, true, nil
}

// isObject reports whether a body is one JSON object.
func isObject(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) && json.Valid(body)
}

func nextLine(b []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(b, []byte("\n"))
	return line, rest
}
