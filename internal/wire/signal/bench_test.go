package signal

import (
	"encoding/json"
	"strings"
	"testing"
)

// relayed is the message that a tracker sees most: an offer of the length that browsers make.
var relayed = func() []byte {
	b, err := Encode(&Signal{
		Swarm: ID{1}, To: ID{2}, Link: ID{3}, Kind: "offer", Plan: &Plan{V: 1, Data: 2, Message: 16384},
		SDP: "v=0\r\no=- 4611731400430051336 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0\r\n" +
			strings.Repeat("a=candidate:1467250027 1 udp 2122260223 192.0.2.17 46243 typ host generation 0 network-id 1\r\n", 4) +
			"a=ice-ufrag:dgGR\r\na=ice-pwd:iJq+7LpvTBcCBr1KQmkrzLfh\r\na=setup:actpass\r\na=mid:0\r\na=sctp-port:5000\r\n",
	})
	if err != nil {
		panic(err)
	}
	return b
}()

// BenchmarkRelay is what a tracker does with a signal, beside encoding/json into a struct and out of it.
func BenchmarkRelay(b *testing.B) {
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m, err := Decode(relayed)
			if err != nil {
				b.Fatal(err)
			}
			s := m.(*Signal)
			s.From, s.To = ID{9}, ID{}
			if _, err := Encode(s); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var s Signal
			if err := json.Unmarshal(relayed, &s); err != nil {
				b.Fatal(err)
			}
			if _, err := json.Marshal(&s); err != nil {
				b.Fatal(err)
			}
		}
	})
}
