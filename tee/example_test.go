package tee_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/tee"
)

// A client calls its provider as before, and also gets each answer as an ibid.Answer.
func ExampleTransport() {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"resp_1","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"msg_1",
			"content":[{"type":"output_text","text":"Herons nest in the old mill. [birds.example](https://birds.example/mill)",
			"annotations":[{"type":"url_citation","start_index":29,"end_index":72,"url":"https://birds.example/mill","title":"The mill colony"}]}]}]}`)
	}))
	defer provider.Close()

	client := &http.Client{Transport: &tee.Transport{
		OnAnswer: func(_ *http.Request, answer *ibid.Answer, err error) {
			if err != nil {
				fmt.Println("the answer may not be all of it:", err)
			}
			fmt.Println(answer.Render(&ibid.RenderOptions{Style: ibid.StylePlain, List: true}))
		},
	}}

	// What an SDK does with the client it was given:
	response, err := client.Post(provider.URL+"/v1/responses", "application/json", strings.NewReader(`{"model":"m","input":"Where do herons nest?"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	fmt.Println(len(body), "bytes,", err)

	// Output:
	// Herons nest in the old mill.[1]
	//
	// Sources:
	//
	// [1] The mill colony — birds.example — https://birds.example/mill
	//
	// 369 bytes, <nil>
}

// A Body does the same for one body: here the answer is kept before its last byte is sent on.
func ExampleBody() {
	upstream := io.NopCloser(strings.NewReader("data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Yes.\"}}]}\n\ndata: [DONE]\n\n"))
	var sent bytes.Buffer
	body := tee.NewBody(upstream, &tee.Options{Done: func(r tee.Result) {
		fmt.Printf("keep %q (%v): %q was not sent yet\n", r.Answer.Text, r.End, "[DONE]")
		fmt.Println(strings.Contains(sent.String(), "[DONE]"))
	}})
	defer body.Close()
	if _, err := io.Copy(struct{ io.Writer }{&sent}, body); err != nil {
		fmt.Println(err)
	}
	fmt.Println(strings.Contains(sent.String(), "[DONE]"))

	// Output:
	// keep "Yes." (mark): "[DONE]" was not sent yet
	// false
	// true
}
