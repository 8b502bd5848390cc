package frame_test

import (
	"fmt"

	"github.com/ibidhq/ibid/internal/frame"
)

func ExampleSplitter() {
	s := frame.Splitter{Emit: func(f frame.Frame) {
		switch {
		case f.Done:
			fmt.Println("done")
		case f.Err != nil:
			fmt.Println(f.Err)
		default:
			fmt.Printf("%s %s\n", f.Event, f.Data)
		}
	}}
	for _, cut := range []string{"event: delta\nda", "ta: {\"text\":\"Wet", " years\"}\n\n", "data: [DONE]\n\n"} {
		s.Write([]byte(cut))
	}
	s.Close()
	fmt.Println(s.Kind())
	// Output:
	// delta {"text":"Wet years"}
	// done
	// SSE
}
