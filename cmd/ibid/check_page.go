package main

import (
	"context"
	"net/url"
	"path"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/snapshot"
)

// namedPage is a source that was named by its address.
type namedPage struct {
	documents []snapshot.Document
	url       string // where it was found
	size      int
}

// newPageFetcher returns what reads sources that are named by their addresses: pages of the size that files may have.
func newPageFetcher(allow server.Networks) *snapshot.Fetcher {
	return snapshot.NewFetcher(&snapshot.FetchOptions{
		Allow: allow, Limits: snapshot.FetchLimits{Bytes: snapshot.MaxBytes, Compressed: snapshot.MaxBytes},
	})
}

// readPage reads the documents at an address. A document of a web page is known by where it was found.
func readPage(ctx context.Context, f *snapshot.Fetcher, name string) (*namedPage, error) {
	snap, err := f.Fetch(ctx, &snapshot.FetchRequest{URL: name})
	if err != nil {
		return nil, &unnamedError{name, err}
	}
	p := &namedPage{url: snap.FinalURL, size: len(snap.Octets)}
	file := pageFile(snap.FinalURL)
	p.documents, err = snapshot.ReadDocuments(
		file, snap.Octets, &snapshot.TextOptions{MediaType: snap.MediaType, URL: snap.FinalURL, Name: file},
	)
	if err != nil {
		return nil, &unnamedError{file, err}
	}
	if len(p.documents) != 1 || p.documents[0].ID != file { // documents of a file of them have ids of their own
		return p, nil
	}
	d := &p.documents[0]
	d.ID, d.Source.ID, d.Source.Kind, d.Source.Filename = p.url, p.url, ibid.Web, ""
	if clean, err := snapshot.CleanURL(name); err == nil && clean != p.url {
		d.Source.OriginalURL = clean
	}
	return p, nil
}

// pageFile returns what a file from this address would be called.
func pageFile(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	if name := path.Base(u.Path); name != "." && name != "/" {
		return name
	}
	return u.Host
}

// fetchWords returns what is wrong with a fetch without the address, which messages name themselves.
func fetchWords(err *snapshot.FetchError) string {
	return strings.TrimPrefix(err.Error(), "fetching "+err.URL+": ")
}

// fetchHint is what to do about a source that was not fetched.
func fetchHint(err *snapshot.FetchError) string {
	switch err.Kind {
	case snapshot.Blocked:
		switch err.Reason {
		case "network", "port":
			return "if it is in a network of yours, --allow-net CIDR names that, as --allow-net 127.0.0.0/8"
		}
		return "addresses begin with https:// or http://"
	case snapshot.AccessDenied:
		return "save the page and name the file"
	case snapshot.TooLarge:
		return "save what matters of it, and name the file"
	case snapshot.Gone:
		return "does a browser find it?"
	case snapshot.Unreachable:
		return "try again later, or save the page and name the file"
	case snapshot.RobotsDisallowed, snapshot.UnsupportedMedia:
	}
	return ""
}
