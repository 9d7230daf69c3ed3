// Package netcheck measures a line against a probe server (spec/probe.md), as `leeway probe run` does. Its twin for browsers is
// web/packages/netcheck.
package netcheck
