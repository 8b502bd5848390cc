// Package passage reads the passages that a model was given to answer from, wherever they are: numbered or tagged in a
// prompt, as JSON in a tool's result, or as a list of documents beside the question.
//
// Requests (internal/call), runs and traces (trail) and lists of documents (internal/wire) all read them here, so that
// the same passage has the same words and names whichever way it came. Reading never fails and takes time linear in
// its input: what is no passage is left out.
package passage
