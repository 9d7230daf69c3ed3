package netstat

// Values of Mapping (spec/probe.md, "Reachability").
const (
	NoAnswer            = "no-answer"
	Untranslated        = "untranslated"
	Dependent           = "dependent"
	EndpointIndependent = "endpoint-independent"
	UnknownMapping      = "unknown"
)

// Mapping is what a NAT does with one socket: answered are the hosts of the STUN servers that answered, mappings how many reflexive
// addresses they told, and translated whether one is another than the socket's own; nil: not known.
func Mapping(answered []string, mappings int, translated *bool) string {
	switch {
	case len(answered) == 0:
		return NoAnswer
	case translated != nil && !*translated:
		return Untranslated
	case mappings > 1:
		return Dependent
	}
	for _, host := range answered {
		if host != answered[0] {
			return EndpointIndependent
		}
	}
	return UnknownMapping
}
