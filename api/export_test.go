package api

// TextCell is textCell, for tests.
var TextCell = textCell
