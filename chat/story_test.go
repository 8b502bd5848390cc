package chat_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/chat"
	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server/servertest"
	"github.com/ibidhq/ibid/store"
)

// The stories of testdata/story. Their commands are
//
//	chat [asked-nothing | hangs-up | slow]  a chat in front of internal/replay, or of providers that must not be asked, that
//	                                        close the connection, or that take their time. https://app.example may call it,
//	                                        and gemini has no model.
//	token NAME TENANT SCOPE…                makes an access token, and sets a variable to it
//	asked TEXT                              checks the last question of the last answer
func TestStories(t *testing.T) {
	type story = servertest.Story[*world]
	servertest.Stories(t, map[string]string{
		"HERONS": question("openai", herons),
		"NL":     "\n",
		"UI":     `{"id":"a","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"?"}]}]}`,
	}, map[string]func(*story, []string){
		"chat": func(s *story, args []string) {
			setup := &setup{origins: []string{"https://app.example"}, change: func(p []chat.Provider) { p[1].Model = "" }}
			switch strings.Join(args, " ") {
			case "asked-nothing":
				setup.upstream = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { s.TB.Error("the upstream was asked") })
			case "hangs-up":
				setup.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					c, _, _ := http.NewResponseController(w).Hijack()
					_ = c.Close()
				})
			case "slow":
				setup.upstream = replay.New(&replay.Options{Delay: 20 * time.Millisecond})
			}
			*s.World = newWorld(s.TB, setup)
			s.Serve((*s.World).URL)
		},
		"token": func(s *story, args []string) {
			token := &store.Token{Name: "t", Tenant: args[1], Scopes: args[2:]}
			s.Setenv(args[0], testenv.Must((*s.World).Store.NewToken(s.TB.Context(), token))(s.TB))
		},
		"asked": func(s *story, args []string) {
			prompt := (*s.World).stored(s.TB, http.Header{"Ibid-Answer": {s.Getenv("ANSWER")}}).Prompt
			if got := prompt[len(prompt)-1].Text; got != args[0] {
				s.Fatalf("asked %q", got)
			}
		},
	})
}
