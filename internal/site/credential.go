package site

import "strings"

// credentialNames are query parameters that grant access to content (spec/site.md, "Credentials in a manifest's URL").
var credentialNames = map[string]bool{
	"token": true, "access_token": true, "auth": true, "signature": true, "sig": true, "policy": true, "key-pair-id": true,
	"hdnts": true, "hdnea": true, "hdntl": true, "__token__": true, "jwt": true, "expires": true, "st": true,
}

// HasCredential says whether a URL carries a signature, a token or user information: its site is not open to everyone,
// and without a join token peer delivery stays off for it.
func HasCredential(rawURL string) bool {
	u, _, _ := strings.Cut(rawURL, "#")
	address, query, _ := strings.Cut(u, "?")
	if scheme, rest, ok := strings.Cut(address, "//"); ok && !strings.Contains(scheme, "/") {
		authority, _, _ := strings.Cut(rest, "/")
		if strings.Contains(authority, "@") {
			return true
		}
	}
	var e, h bool
	for part := range strings.SplitSeq(query, "&") {
		name := asciiLower(percentForm(parameter(part), true))
		if credentialNames[name] || strings.HasPrefix(name, "x-amz-") || strings.HasPrefix(name, "x-goog-") {
			return true
		}
		e = e || name == "e"
		h = h || name == "h"
	}
	return e && h
}
