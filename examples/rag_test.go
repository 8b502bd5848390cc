package examples

import "testing"

func TestX(t *testing.T) { _ = build(t) }
