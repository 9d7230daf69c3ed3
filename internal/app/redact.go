package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"regexp"
	"strings"
)

// redactingHandler shortens addresses to their network, /24 or /48, in messages and errors of a log line. Addresses of viewers occur
// in errors and in debug messages of libraries. The operator's own addresses are in other attributes, which stay as they are.
type redactingHandler struct{ next slog.Handler }

// Enabled implements slog.Handler.
func (d redactingHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return d.next.Enabled(ctx, l)
}

// WithGroup implements slog.Handler.
func (d redactingHandler) WithGroup(name string) slog.Handler {
	return redactingHandler{d.next.WithGroup(name)}
}

// WithAttrs implements slog.Handler.
func (d redactingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	short := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		short[i] = redactAttr(a)
	}
	return redactingHandler{d.next.WithAttrs(short)}
}

// Handle implements slog.Handler.
func (d redactingHandler) Handle(ctx context.Context, r slog.Record) error {
	short := slog.NewRecord(r.Time, r.Level, withoutAddresses(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		short.AddAttrs(redactAttr(a))
		return true
	})
	return d.next.Handle(ctx, short)
}

// redactAttr looks at errors, whatever their key, and at texts under the key of one.
func redactAttr(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			a.Value = slog.StringValue(withoutAddresses(fmt.Sprint(err)))
		}
	case slog.KindString:
		if a.Key == "error" {
			a.Value = slog.StringValue(withoutAddresses(v.String()))
		}
	case slog.KindGroup:
		short := make([]slog.Attr, 0, len(v.Group()))
		for _, inner := range v.Group() {
			short = append(short, redactAttr(inner))
		}
		a.Value = slog.GroupValue(short...)
	}
	return a
}

// maybeAddress matches a run of characters of addresses, maybeIPv4 a narrower one; netip decides which are addresses. A zone ends
// a run, because it belongs to this machine.
var (
	maybeAddress = regexp.MustCompile(`[0-9a-fA-F:.]*[:.][0-9a-fA-F:.]*`)
	maybeIPv4    = regexp.MustCompile(`[0-9]+(\.[0-9]+){3}(:[0-9]+)?`)
)

// withoutAddresses leaves the network of every address in a text, and nothing of its port.
func withoutAddresses(text string) string {
	return maybeAddress.ReplaceAllStringFunc(text, func(run string) string {
		inner := strings.TrimLeft(run, ".")
		for _, sentence := range []string{inner, strings.TrimRight(inner, "."), strings.TrimRight(inner, ":."), strings.TrimSuffix(strings.TrimRight(inner, "."), ":")} {
			if short, ok := network(sentence); ok {
				return strings.Replace(run, sentence, short, 1)
			}
		}
		return maybeIPv4.ReplaceAllStringFunc(run, func(v4 string) string {
			if short, ok := network(v4); ok {
				return short
			}
			return v4
		})
	})
}

// network is the redacted form of the address in text, which may have a port.
func network(text string) (string, bool) {
	a, err := netip.ParseAddr(text)
	if err != nil {
		ap, err := netip.ParseAddrPort(text)
		if err != nil {
			return "", false
		}
		a = ap.Addr()
	}
	a = a.Unmap()
	if a.IsLoopback() || a.IsUnspecified() {
		return text, true
	}
	bits := 48
	if a.Is4() {
		bits = 24
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return "", false
	}
	return p.String(), true
}
