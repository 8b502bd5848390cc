// Package openapi writes the description of ibid's HTTP API, as OpenAPI 3.1, from the tables of routes
// ([httpx.Route]), the Go types that they name, and the comments of these types. Only tests import it: the description
// is a file, api/openapi.json, which go generate writes and the server serves as it is.
package openapi
