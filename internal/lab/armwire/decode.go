package armwire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// Decode reads the envelope of a message. An envelope that is whole but wrong is returned beside the error, so that the error can be
// answered with its transaction.
func Decode(b []byte) (Message, *Error) {
	var m Message
	if len(b) > MaxMessage {
		return m, Fail(BadMessage, "%d bytes; at most %d", len(b), MaxMessage)
	}
	if trimmed := bytes.TrimLeft(b, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return m, Fail(BadMessage, "no JSON object")
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return Message{}, Fail(BadMessage, "%v", err)
	}
	if !validName(m.Transaction, true) {
		return Message{}, Fail(BadMessage, "transaction: %s", nameRule)
	}
	if !validName(m.ID, true) {
		m.ID = ""
		return m, Fail(BadMessage, "id: %s", nameRule)
	}
	switch {
	case m.Kind == "":
		return m, Fail(BadMessage, `member "jattack" is missing`)
	case m.Transaction == "" && (m.IsReply() || commands[m.Kind] && !events[m.Kind]):
		return m, Fail(BadMessage, `%s needs a member "transaction"`, clip(string(m.Kind)))
	case m.Transaction != "" && events[m.Kind] && !commands[m.Kind]:
		return m, Fail(BadMessage, "%s is an event and has no transaction", m.Kind)
	case !m.IsReply() && !commands[m.Kind] && !events[m.Kind]:
		return m, Fail(UnknownCommand, "%q", clip(string(m.Kind)))
	}
	return m, nil
}

const nameRule = "1 to 64 of A-Z a-z 0-9 . _ -"

// validName says whether s can name a session, a source or a transaction.
func validName(s string, empty bool) bool {
	if s == "" {
		return empty
	}
	if len(s) > MaxName {
		return false
	}
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-", c) >= 0) {
			return false
		}
	}
	return true
}

// body is what a body has: it checks its members.
type body[T any] interface {
	*T
	check() *Error
}

// DecodeCommand reads the body of a command. Members that are not known are refused: a controller learns of a mistyped one.
func DecodeCommand[T any, B body[T]](m Message) (T, *Error) { return decode[T, B](m.Body, true) }

// DecodeBody reads the body of a reply or event. Members that are not known are passed over: a later version has said them.
func DecodeBody[T any, B body[T]](m Message) (T, *Error) { return decode[T, B](m.Body, false) }

func decode[T any, B body[T]](raw json.RawMessage, strict bool) (T, *Error) {
	var v T
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(&v); err != nil {
		var zero T
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			return zero, badField(clip(kind.Field), "%s where %s is expected", kind.Value, kind.Type)
		}
		if name, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
			return zero, badField(clip(strings.Trim(name, `"`)), "not known")
		}
		return zero, badField("", "%v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		var zero T
		return zero, badField("", "more than one value")
	}
	if err := B(&v).check(); err != nil {
		var zero T
		return zero, err
	}
	return v, nil
}
