package netcheck

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/leeway-video/leeway/internal/qualitylink"
	"github.com/leeway-video/leeway/internal/wire/quality"
	"github.com/leeway-video/leeway/internal/wsconn"
)

// Code says why something was not measured: a closed set, the same in both languages.
type Code string

// The codes.
const (
	Unreachable Code = "unreachable" // the server does not answer
	Refused     Code = "refused"     // it answers with a status that says why
	Stopped     Code = "stopped"     // it, or the line to it, went silent while a test ran
	Blocked     Code = "blocked"     // no data channel opens
	Aborted     Code = "aborted"     // from outside
)

var (
	errSilent = errors.New("no answer in time")
	errQuiet  = errors.New("went silent")
)

// saidError is what the server says of a data channel, or of a stream of it, that it ends.
type saidError struct {
	code quality.Code
	text string
}

// Error implements error.
func (e *saidError) Error() string { return fmt.Sprintf("the server ends it: %s (%s)", e.text, e.code) }

// refusal is the same as a refused request; nil: it is none.
func (e *saidError) refusal() *Error {
	switch e.code {
	case quality.CodeBytes:
		return &Error{Code: Refused, Status: http.StatusTooManyRequests, RetryAfter: bytesAfter, Err: e}
	case quality.CodeEnding:
		return &Error{Code: Refused, Status: http.StatusServiceUnavailable, Err: e}
	}
	return nil
}

// Error says why a phase has no result, and what to do.
type Error struct {
	Code       Code
	Phase      Phase
	Status     int    // HTTP, of a refusal
	RetryAfter string // seconds, where the server says so
	Err        error
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("%s: %v (%s)", e.Phase, e.Err, e.advice())
}

// advice is what to do.
func (e *Error) advice() string {
	var unknown *tls.CertificateVerificationError
	switch {
	case errors.Is(e.Err, http.ErrSchemeMismatch):
		return "it has no TLS: begin the address with http://"
	case e.Status == http.StatusBadRequest && strings.Contains(e.Err.Error(), "to an HTTPS server"): // the words of Go's library
		return "it has TLS: begin the address with https://"
	case errors.As(e.Err, &unknown):
		return "is it the name of the certificate? Give its roots if it is signed by others than the system knows: --ca"
	case e.Code == Unreachable:
		return "check the address and port, and that a firewall lets TCP through"
	case e.Status == http.StatusUnauthorized:
		return "give a token: --token"
	case e.Status == http.StatusForbidden:
		return "get a new token: this one is of another site, or has ended"
	case e.RetryAfter != "":
		return "come back in " + e.RetryAfter + " s"
	case e.Status == http.StatusNotFound || e.Status == http.StatusBadRequest:
		return "is it a probe server of this version, and the whole address?"
	case e.Status == http.StatusServiceUnavailable:
		return "it is busy or about to end: try again in a few minutes, or another server"
	case e.Code == Refused:
		return "try another server"
	case e.Code == Blocked:
		return "UDP to the server may be blocked, its probe.announce be missing, or a round trip take more than a second"
	case e.Code == Stopped:
		return "the line or the server failed; try again"
	}
	return "ended before it was complete"
}

// ends says whether the phases that follow would fail as well.
func (e *Error) ends() bool { return e.Code != Blocked && e.Status != http.StatusNotFound }

// asError finds the code of an error.
func asError(ctx context.Context, p Phase, err error) *Error {
	e := &Error{Code: Unreachable, Phase: p, Err: err}
	var own *Error
	var refused *wsconn.RefusedError
	var said *saidError
	if errors.As(err, &said) && said.refusal() != nil {
		own = said.refusal()
	}
	switch {
	case own != nil || errors.As(err, &own):
		own.Phase = p
		return own
	case ctx.Err() != nil:
		e.Code, e.Err = Aborted, errors.New("aborted")
	case errors.As(err, &refused):
		e.Code, e.Status, e.RetryAfter = Refused, refused.Status, refused.RetryAfter
		e.Err = fmt.Errorf("the server answered %d: %s", refused.Status, refused.Text)
	case errors.Is(err, qualitylink.ErrOpen):
		e.Code = Blocked
	case errors.Is(err, errQuiet) || p != Baseline && errors.Is(err, errSilent):
		e.Code = Stopped
	case p == Quality || p == Classes:
		e.Code = Stopped
	}
	return e
}
