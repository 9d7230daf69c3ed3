package site

// NarrowRole is the narrower of two roles: what is left where both hold. To upload nothing and to show no address are two
// things; who may do neither is off.
func NarrowRole(a, b string) string {
	switch {
	case a == b || b == RoleFull:
		return a
	case a == RoleFull:
		return b
	}
	return RoleOff
}
