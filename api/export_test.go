package api

// TextCell is for tests.
var TextCell = textCell
