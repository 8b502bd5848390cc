package main

import (
	"bufio"
	"io"
	"iter"
	"strings"
)

// event is a server-sent event; one without a name is a comment.
type event struct{ id, name, data string }

// eventsOf returns the events of a stream, and the error that ended it. An incomplete event is dropped.
func eventsOf(r io.Reader) iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		in := bufio.NewReader(r)
		var e event
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				yield(event{}, err)
				return
			}
			name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
			value = strings.TrimPrefix(value, " ")
			switch name {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data += value
			}
			if strings.TrimRight(line, "\r\n") != "" {
				continue
			}
			if !yield(e, nil) {
				return
			}
			e = event{}
		}
	}
}
