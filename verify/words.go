package verify

import (
	"fmt"
	"strings"
)

// Why says in a sentence or two what the report's state comes from.
func (r *Report) Why() string {
	switch r.State {
	case Invalid:
		if len(r.Failure) == 0 {
			return "Something failed."
		}
		return r.Failure[0].failed(len(r.Failure) - 1)
	case Unverifiable:
		return r.unknown()
	case Trusted:
		return "Nothing failed, and everything is signed by whom you trust." + r.summary()
	case Valid:
		return "Nothing failed, but " + r.distrust() + r.summary()
	default:
		return "Nothing is known of it: " + shown(strings.TrimSpace(r.Error))
	}
}

func (f *Finding) failed(more int) string {
	s := shown(string(f.Code))
	if f.Claim != "" {
		s = "claim " + shown(f.Claim) + ": " + s
	}
	s = "Failed: " + s
	if f.Detail != "" {
		s += ". " + shown(f.Detail)
	}
	if more > 0 {
		s += fmt.Sprintf(" (And %d more.)", more)
	}
	return s
}

func (r *Report) unknown() string {
	n := 0
	var first *Finding
	for i := range r.Info {
		if r.Info[i].Counts == CountUnverifiable {
			if n++; first == nil {
				first = &r.Info[i]
			}
		}
	}
	if first == nil {
		return "Something could not be looked at."
	}
	what := shown(string(first.Code))
	if first.Source != "" {
		what += ": " + shownURL(first.Source)
	}
	if first.Detail != "" {
		what += ". " + shown(first.Detail)
	}
	return fmt.Sprintf("Nothing failed, but %d could not be looked at, the first %s", n, what)
}

// distrust says why a report is valid and not trusted.
func (r *Report) distrust() string {
	switch {
	case len(r.Manifests) == 0:
		return "nobody signed it."
	case len(r.Sources) > 0:
		return "sources are announced of which nobody says what was taken from them."
	}
	for i := range r.Manifests {
		if !r.Manifests[i].Verified {
			return "it has no signature that could be checked."
		}
	}
	for i := range r.Info {
		if f := &r.Info[i]; open(*f) {
			return strings.ToLower(f.Detail[:1]) + shown(f.Detail[1:])
		}
	}
	return "you have not said that you trust who signed it."
}

// summary says how much was looked at.
func (r *Report) summary() string {
	good, warnings := 0, 0
	for i := range r.Claims {
		for k := range r.Claims[i].Sources {
			s := &r.Claims[i].Sources[k].Result
			if s.Counts.Passes() {
				good++
			}
			if s.Counts == CountWarning {
				warnings++
			}
		}
		if r.Claims[i].Counts == CountWarning {
			warnings++
		}
	}
	s := fmt.Sprintf(
		" %d of %s in order, for %s.", good,
		number(r.cited(), "cited source"),
		number(len(r.Claims), "claim"),
	)
	if warnings > 0 {
		s += " " + number(warnings, "warning") + "."
	}
	return s
}

// number returns how many there are of what has this name: 1 claim, 2 claims.
func number(n int, name string) string {
	if n != 1 {
		name += "s"
	}
	return fmt.Sprintf("%d %s", n, name)
}

func (r *Report) cited() int {
	n := 0
	for i := range r.Claims {
		n += len(r.Claims[i].Sources)
	}
	return n
}

// Next says what a person can do now; empty: nothing needs to be done.
func (r *Report) Next() string {
	switch r.State {
	case Valid:
		return r.nextValid()
	case Unverifiable:
		return r.nextUnknown()
	case Invalid:
		return r.nextInvalid()
	default:
		return ""
	}
}

func (r *Report) nextValid() string {
	for i := range r.Manifests {
		m := &r.Manifests[i]
		switch {
		case m.Verified && !m.Trusted && unforgeable(m.URL):
			return fmt.Sprintf("if you trust %s, say so with --trust %s, or --trust %s for this key only.",
				ascii(hostOf(m.URL)), ascii(hostOf(m.URL)), shown(m.KeyID))
		case m.Verified && !m.Trusted:
			return fmt.Sprintf("if you know this key to be the publisher's, say so with --trust %s.", shown(m.KeyID))
		case !m.Verified && r.Kind == KindManifest && m.URL != "" && r.Input != m.URL:
			return "verify " + shownURL(m.URL) + ", where its signature is."
		}
	}
	return ""
}

func (r *Report) nextUnknown() string {
	for i := range r.Info {
		f := &r.Info[i]
		if f.Counts != CountUnverifiable {
			continue
		}
		switch f.Code {
		case ManifestPending:
			return "verify it again in a minute."
		case Blocked, ManifestBlocked:
			return "if the address is in a network of yours, allow it with --allow-net."
		case HeaderMissing, NothingQuoted:
			return "ask its publisher to say where its claims come from (docs/attribution-v1.md)."
		default:
			return "verify it again later, or open the sources that could not be read."
		}
	}
	return ""
}

func (r *Report) nextInvalid() string {
	for i := range r.Manifests {
		if m := &r.Manifests[i]; m.Incidents != "" {
			return "do not rely on what failed; the publisher takes incidents at " + shownURL(m.Incidents) + "."
		}
	}
	return "do not rely on what failed; open its source and read it yourself."
}
