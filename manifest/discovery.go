package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/keyring"
)

// The paths of what a publisher serves besides manifests.
const (
	DiscoveryPath = "/.well-known/agent-citation-attribution"
	DirectoryPath = "/.well-known/http-message-signatures-directory" // current keys
	KeysPath      = "/.well-known/agent-citation-keys"               // current and former keys
	SchemaPath    = "/schema/manifest-v1.json"
	LogPath       = "/log/"
	ProofSuffix   = ".tlog-proof" // appended to a manifest's path: its proof of inclusion in the log
)

// Discovery is a publisher's description of itself, served at DiscoveryPath. Levels is a promise, for what was emitted
// since the times of LevelsSince; the actual level is observed.
type Discovery struct {
	Version           string   `json:"version"`
	HeaderVersions    []string `json:"header_versions"`
	ManifestSchema    string   `json:"manifest_schema,omitempty"`
	SupportedSigning  []string `json:"supported_signing"`
	SigningAlgorithms []string `json:"signing_algorithms"`
	Contact           string   `json:"contact,omitempty"`
	Levels            []int    `json:"levels"`
	// by level, since when it is promised; one that is missing always was
	LevelsSince     map[string]Time `json:"levels_since,omitempty"`
	JWKSURI         string          `json:"jwks_uri,omitempty"`
	ManifestKeysURI string          `json:"manifest_keys_uri,omitempty"`
	// other origins whose manifests speak for answers of this one
	ManifestOrigins  []string      `json:"manifest_origins"`
	Log              *DiscoveryLog `json:"log"`
	IncidentEndpoint *string       `json:"incident_endpoint"`
}

// DiscoveryLog describes a publisher's transparency log.
type DiscoveryLog struct {
	Origin string `json:"origin"`
	URL    string `json:"url"`
	VKey   string `json:"vkey"`
}

// Discovery returns the document that p serves at DiscoveryPath.
func (p *Publisher) Discovery() *Discovery {
	d := &Discovery{
		Version: Version, HeaderVersions: []string{"1"}, SupportedSigning: []string{}, SigningAlgorithms: []string{},
		Contact: p.Contact, Levels: []int{}, ManifestOrigins: append([]string{}, p.ManifestOrigins...),
	}
	for level := 1; level <= p.Level; level++ {
		d.Levels = append(d.Levels, level)
		if since := p.Since[level]; !since.IsZero() {
			if d.LevelsSince == nil {
				d.LevelsSince = map[string]Time{}
			}
			d.LevelsSince[strconv.Itoa(level)] = At(since)
		}
	}
	if p.IncidentEndpoint != "" {
		d.IncidentEndpoint = &p.IncidentEndpoint
	}
	if p.Level < 2 && p.Keys == nil {
		return d
	}
	d.ManifestSchema = p.URL(SchemaPath)
	if p.Log != nil {
		vkey := p.Log.VerifierKey()
		origin, _, _ := strings.Cut(vkey, "+")
		d.Log = &DiscoveryLog{Origin: origin, URL: p.URL(LogPath), VKey: vkey}
	}
	if p.Keys == nil {
		return d
	}
	d.SupportedSigning = []string{"http-message-signatures"}
	for _, algorithm := range []string{keyring.Ed25519, keyring.ECDSAP256} {
		if slices.ContainsFunc(p.Keys.List(), func(k keyring.Key) bool {
			return k.Algorithm == algorithm && k.Use == keyring.Manifest
		}) {
			d.SigningAlgorithms = append(d.SigningAlgorithms, algorithm)
		}
	}
	d.JWKSURI, d.ManifestKeysURI = p.URL(DirectoryPath), p.URL(KeysPath)
	return d
}

// Speaks reports whether the publisher at manifestURL may speak for an agent: the host of agentID, and its port if it
// has one, must be that of the URL.
func Speaks(manifestURL, agentID string) bool {
	u, err := url.Parse(manifestURL)
	if err != nil || u.Host == "" {
		return false
	}
	agent, _, _ := strings.Cut(agentID, "/")
	return agent != "" && (strings.EqualFold(agent, u.Host) || strings.EqualFold(agent, u.Hostname()))
}

// checkOrigin returns an error unless s is an origin: a scheme, http or https, and a host, and nothing else.
func checkOrigin(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		// without the address, which may have a password
		return fmt.Errorf("checking an origin: %w", errors.Unwrap(err))
	case u.Scheme != "https" && u.Scheme != "http":
		return errors.New("checking an origin: it does not begin with https:// or http://")
	case u.User != nil:
		return errors.New("checking an origin: it has a user")
	case u.Hostname() == "" || u.Opaque != "":
		return errors.New("checking an origin: it has no host")
	case s != u.Scheme+"://"+u.Host:
		return errors.New("checking an origin: it is more than a scheme and a host")
	case s != strings.ToLower(s):
		return errors.New("checking an origin: it has capital letters")
	}
	return nil
}

// Agent returns the agent id for manifests: AgentID, or the host of Origin followed by /v1.
func (p *Publisher) Agent() string {
	if p.AgentID != "" {
		return p.AgentID
	}
	_, host, _ := strings.Cut(p.Origin, "://")
	return cmp.Or(host, "unknown") + "/v1"
}

// Path returns the path at which a manifest is served: that of an answer of the run with the public id pub, or of the
// run's end if answer is empty. revision counts from 1; each revision supersedes the one before.
//
// Paths are unique: in pub and answer every octet except ASCII letters, digits, - and _ is written as ~ and two
// hexadecimal digits. So the only dot is the one before a revision number, and no path ends like that of a proof.
func Path(pub, answer string, revision int) string {
	path := "/runs/" + segment(pub) + "/cite"
	if answer != "" {
		path += "/" + segment(answer)
	}
	if revision > 1 {
		path += "." + strconv.Itoa(revision)
	}
	return path
}

var manifestPath = regexp.MustCompile(`^/runs/([^/.]+)/cite(?:/([^/.]+))?(?:\.([1-9][0-9]*))?$`)

// isManifestPath reports whether path is one that Path makes.
func isManifestPath(path string) bool {
	parts := manifestPath.FindStringSubmatch(path)
	if parts == nil || len(path) > maxOwnURL {
		return false
	}
	pub, err := url.PathUnescape(strings.ReplaceAll(parts[1], "~", "%"))
	answer, err2 := url.PathUnescape(strings.ReplaceAll(parts[2], "~", "%"))
	revision, err3 := strconv.ParseInt("0"+parts[3], 10, 32)
	return errors.Join(err, err2, err3) == nil && path == Path(pub, answer, int(revision))
}

// segment encodes a name as one segment of a path.
func segment(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if isMadeOf(name[i:i+1], "-_") {
			b.WriteByte(name[i])
		} else {
			fmt.Fprintf(&b, "~%02X", name[i])
		}
	}
	return b.String()
}
