// Package openapi generates the OpenAPI 3.1 description of ibid's HTTP API from the route tables ([httpx.Route]), the
// Go types that they name, and the comments of these types. Only tests import it: the result is the file
// api/openapi.json, written by go generate and served as it is.
package openapi
