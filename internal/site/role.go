package site

// NarrowRole is the narrower of two roles: what is left where both hold. Leech (no uploads) and relay-only (no
// address shown) are independent; both together leave off.
func NarrowRole(a, b string) string {
	switch {
	case a == b || b == RoleFull:
		return a
	case a == RoleFull:
		return b
	}
	return RoleOff
}
