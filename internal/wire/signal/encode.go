package signal

import (
	"encoding/json"
	"strconv"
)

// appendMessage writes the messages that a tracker sends all the time, to the byte as encoding/json does, which takes several
// times as long for looking each field up; false is for all others.
func appendMessage(b []byte, m Message) ([]byte, bool) {
	switch m := m.(type) {
	case *Signal:
		return appendSignal(b, m), true
	case *Introduce:
		return appendIntroduce(b, m), true
	case *Joined:
		return appendJoined(b, m), true
	case *Error:
		return appendError(b, m), true
	}
	return b, false
}

func appendSignal(b []byte, m *Signal) []byte {
	b = appendRequest(append(b, `{"type":"signal"`...), m.Request)
	b = appendID(append(b, `,"swarm":`...), &m.Swarm)
	if !m.To.IsZero() {
		b = appendID(append(b, `,"to":`...), &m.To)
	}
	if !m.From.IsZero() {
		b = appendID(append(b, `,"from":`...), &m.From)
	}
	b = appendText(b, `,"role":`, m.Role)
	b = appendID(append(b, `,"link":`...), &m.Link)
	b = appendString(append(b, `,"kind":`...), m.Kind)
	b = appendText(b, `,"sdp":`, m.SDP)
	if p := m.Plan; p != nil {
		b = strconv.AppendInt(append(b, `,"plan":{"v":`...), int64(p.V), 10)
		b = strconv.AppendInt(append(b, `,"data":`...), int64(p.Data), 10)
		b = append(strconv.AppendInt(append(b, `,"message":`...), int64(p.Message), 10), '}')
	}
	if m.Early {
		b = append(b, `,"early":true`...)
	}
	for i := range m.Wanted {
		b = appendID(append(b, opening(i, `,"wanted":[`)...), &m.Wanted[i])
	}
	b = closing(b, len(m.Wanted))
	for i, said := range m.Said {
		b = append(append(b, opening(i, `,"said":[`)...), '"')
		b = append(base64url.AppendEncode(b, said), '"')
	}
	b = closing(b, len(m.Said))
	b = appendText(b, `,"candidate":`, m.Candidate)
	b = appendText(b, `,"sdp_mid":`, m.Mid)
	if m.MLine != 0 {
		b = strconv.AppendInt(append(b, `,"sdp_m_line_index":`...), int64(m.MLine), 10)
	}
	return append(appendText(b, `,"reason":`, m.Reason), '}')
}

func appendIntroduce(b []byte, m *Introduce) []byte {
	b = appendID(append(b, `{"type":"introduce","swarm":`...), &m.Swarm)
	b = append(b, `,"peers":[`...)
	for i := range m.Peers {
		p := &m.Peers[i]
		b = appendID(append(append(b, opening(i, "")...), `{"peer":`...), &p.Peer)
		b = append(appendString(append(b, `,"role":`...), p.Role), '}')
	}
	return append(b, `]}`...)
}

func appendJoined(b []byte, m *Joined) []byte {
	b = appendRequest(append(b, `{"type":"joined"`...), m.Request)
	b = appendID(append(b, `,"swarm":`...), &m.Swarm)
	b = strconv.AppendInt(append(b, `,"viewers":`...), int64(m.Viewers), 10)
	b = strconv.AppendInt(append(b, `,"seeds":`...), int64(m.Seeds), 10)
	for i := range m.Offered {
		o := &m.Offered[i]
		b = appendID(append(append(b, opening(i, `,"offered":[`)...), `{"link":`...), &o.Link)
		b = appendID(append(b, `,"peer":`...), &o.Peer)
		b = append(appendString(append(b, `,"role":`...), o.Role), '}')
	}
	return append(closing(b, len(m.Offered)), '}')
}

func appendError(b []byte, m *Error) []byte {
	b = appendRequest(append(b, `{"type":"error"`...), m.Request)
	b = appendString(append(b, `,"code":`...), m.Code)
	b = appendString(append(b, `,"message":`...), m.Message)
	b = appendText(b, `,"hint":`, m.Hint)
	if m.RetryAfterMs != 0 {
		b = strconv.AppendInt(append(b, `,"retry_after_ms":`...), m.RetryAfterMs, 10)
	}
	return append(b, '}')
}

// opening comes before an element of a list that is left out where it is empty, closing after the last.
func opening(i int, first string) string {
	if i == 0 {
		return first
	}
	return ","
}

func closing(b []byte, elements int) []byte {
	if elements > 0 {
		b = append(b, ']')
	}
	return b
}

func appendRequest(b []byte, id int) []byte {
	if id != 0 {
		b = strconv.AppendInt(append(b, `,"id":`...), int64(id), 10)
	}
	return b
}

func appendID(b []byte, id *ID) []byte {
	return append(base64url.AppendEncode(append(b, '"'), id[:]), '"')
}

// appendText writes a field that is left out where it is empty.
func appendText(b []byte, name, text string) []byte {
	if text != "" {
		b = appendString(append(b, name...), text)
	}
	return b
}

// plain are the characters that stand for themselves in a string, as encoding/json has it, which spares those that HTML minds.
var plain = func() (plain [256]bool) {
	for c := ' '; c < 0x7f; c++ {
		plain[c] = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return plain
}()

func appendString(b []byte, s string) []byte {
	before := len(b)
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if plain[c] {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch c {
		case '\r':
			b = append(b, `\r`...)
		case '\n':
			b = append(b, `\n`...)
		case '"', '\\':
			b = append(b, '\\', c)
		default: // no description has any; encoding/json knows the rules for them
			whole, _ := json.Marshal(s)
			return append(b[:before], whole...)
		}
	}
	return append(append(b, s[from:]...), '"')
}
