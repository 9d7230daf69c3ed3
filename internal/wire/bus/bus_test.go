package bus

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

var (
	one  = signal.ID{1}
	two  = signal.ID{2}
	link = signal.ID{3}
	plan = &signal.Plan{V: 1, Data: 2, Message: 16384}
)

func offer() *Signal {
	return &Signal{Tracker: one, Signal: signal.Signal{Swarm: two, From: one, To: two, Role: "viewer", Link: link, Kind: "offer", SDP: "v=0<>&", Plan: plan}}
}

func bodies() []Message {
	key := SeedKey{signal.VerifyKey{KeyID: make([]byte, 8), Alg: 1, Key: make([]byte, 65)}, []string{"demo"}}
	credited := int64(1 << 40)
	title := &Title{Site: "demo", Title: "/a", Manifest: "/a/m.m3u8", Swarm: two, Viewers: 2}
	revoked := []signal.Revocation{{Site: "demo", Prefix: "/", MinIssuedAt: 9}, {KeyID: make([]byte, 8)}}
	return []Message{
		&TrackerBeat{Tracker: one, StartedMs: 5, Sessions: 3},
		&SeedBeat{Seed: one, Sites: []string{"demo"}, VerifyKeys: []SeedKey{key}, LoadPermille: 10},
		&SeedBeat{Seed: one, Sites: []string{"demo"}, VerifyKeys: []SeedKey{key}, Resting: map[string][]signal.ID{"demo": {two, link}}},
		&HomeRequest{Op: OpJoin, Tracker: one, Session: two, Swarm: link, Site: "demo", Title: "/a", Role: "full", Want: 8, Offers: 2, Range: &signal.Range{From: 1, To: 2}},
		&HomeRequest{Op: OpUpdate, Tracker: one, Session: two, Swarm: link, Want: 8, Learns: new(int)},
		&HomeRequest{Op: OpFailed, Tracker: one, Session: two, Swarm: link, Peer: one},
		&HomeRequest{Op: OpJoin, Tracker: one, Session: two, Swarm: link, Site: "demo", Title: "/a", Role: "full", Address: "a", Subnet: "b", Subject: "c"},
		&HomeRequest{Op: OpStats, Tracker: one, Session: two, Swarm: link, Claims: []Claim{
			{one, signal.PeerStats{In: 16384, Out: 32768, RelayIn: 1, RelayOut: 2}}, {two, signal.PeerStats{Blame: 1}},
		}},
		&HomeRequest{Op: OpEnter, Tracker: one, Session: two, Swarm: link, Serial: 3},
		&HomeRequest{Op: OpQuit, Tracker: one, Session: two, Swarm: link},
		&HomeAnswer{Viewers: 2, Banned: true, Manifest: "/a/m.m3u8"},
		&HomeAnswer{Viewers: 2, Seeds: 1, Peers: []Target{{Peer: one, Role: "seed"}}, Offers: []Target{{Peer: one, Role: "viewer", Tracker: two}}},
		&Delivery{Kind: KindSignal, Signal: offer()},
		&Delivery{Kind: KindIntroduce, Session: one, Swarm: two, Peers: []Target{{Peer: one, Role: "seed"}}},
		&Delivery{Kind: KindReplaced, Session: one, Tracker: two, Stream: &Stream{From: two, N: 7, Base: 3}},
		&Ack{From: one, Next: 8},
		&Delivery{Kind: KindTorrent, Torrent: &Torrent{Op: TorrentSay, Tracker: one, Socket: 3, Quiet: true, Message: json.RawMessage(`{"action":"announce"}`)}},
		&Delivery{Kind: KindTorrent, Torrent: &Torrent{Op: TorrentEnd, Tracker: one, Socket: 3}},
		&HomeAnswer{Split: &Part{Part: 3, Level: 2}},
		&SeedDelivery{Kind: KindTitle, Title: title},
		&SeedDelivery{Kind: KindSignal, Title: title, Signal: offer(), Stream: &Stream{From: one, N: 7, Base: 3}, Subnet: "b", Subject: "c"},
		&Delivery{Kind: KindTorrent, Torrent: &Torrent{Op: TorrentAnew, Tracker: one}},
		&SeedBeat{Seed: one, Sites: []string{"demo"}, VerifyKeys: []SeedKey{key}, Fleet: &SeedFleet{ID: make([]byte, 8), Address: "[fd00::7]:4602"}},
		&SeedDelivery{Kind: KindTitle, Title: &Title{Site: "demo", Title: "/a", Manifest: "/a/m.m3u8", Swarm: two, Viewers: 2, Seeds: []signal.ID{one, two}, Chosen: true, Credited: &credited}},
		&SeedDelivery{Kind: KindTitle, Title: &Title{Site: "demo", Title: "/a", Manifest: "/a/m.m3u8", Swarm: two, Viewers: 2, Beside: "/a/m.mpd", Chosen: true}},
		&Probe{Seed: one, Address: "203.0.113.9:4600", Key: strings.Repeat("aZ0+/9", 5)},
		&RevokeMessage{Revocations: revoked},
		&RevokeList{Revocations: revoked, VerifyKeys: []SeedKey{key}},
		&RevokeMessage{Revocations: revoked[:0], Switches: []Switch{
			{Site: "demo", Reason: "operator", Off: true, At: 1790000000000},
			{Site: "demo", Reason: "harm", Off: true, At: 1790000000000, Until: 1790086400000},
			{Site: "other", Reason: "operator", At: 1790000000001},
		}},
		&RevokeList{Revocations: revoked, VerifyKeys: []SeedKey{key}, Switches: []Switch{{Site: "demo", Reason: "operator", At: 9}}},
	}
}

func TestBodiesSurviveTheBus(t *testing.T) {
	for _, m := range bodies() {
		b, err := Encode(m)
		if err != nil {
			t.Errorf("%T: %v", m, err)
			continue
		}
		back := reflect.New(reflect.TypeOf(m).Elem()).Interface().(Message)
		if err := Decode(b, back); err != nil || !reflect.DeepEqual(m, back) {
			t.Errorf("%T: %v\n  sent %+v\n  came %+v", m, err, m, back)
		}
	}
}

// TestWhatAViewerMaySayFits: whatever characters a viewer chooses, what it may say in one message is not more than one message of the bus.
func TestWhatAViewerMaySayFits(t *testing.T) {
	for _, text := range []string{"<", "\u2028", "\\", "\n"} {
		answer := offer()
		answer.Kind, answer.SDP = "answer", strings.Repeat(text, signal.MaxSDP/len(text))
		for range signal.MaxSaid {
			answer.Said = append(answer.Said, make(signal.Bytes, signal.MaxSaidBytes))
		}
		said := json.RawMessage(`"` + strings.Repeat("<", signal.MaxMessage-2) + `"`) // WebTorrent's descriptions go on as they came
		for _, m := range []Message{
			&Delivery{Kind: KindSignal, Signal: answer, Stream: &Stream{From: two, N: 7, Base: 3}},
			&SeedDelivery{Kind: KindSignal, Signal: answer, Stream: &Stream{From: one, N: 7, Base: 3}, Subnet: "b", Subject: "c"},
			&Delivery{Kind: KindTorrent, Torrent: &Torrent{Op: TorrentSay, Tracker: one, Socket: 3, Message: said}, Stream: &Stream{From: two, N: 7, Base: 3}},
		} {
			if _, err := Encode(m); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
}

func TestBadBodiesAreRefused(t *testing.T) {
	long := offer()
	long.SDP = strings.Repeat("x", signal.MaxSDP+1)
	less, none := int64(-1), -1
	for name, m := range map[string]Message{
		"beat without id":         &TrackerBeat{},
		"load above 1000":         &SeedBeat{Seed: one, LoadPermille: 1001},
		"short key":               &SeedBeat{Seed: one, VerifyKeys: []SeedKey{{VerifyKey: signal.VerifyKey{Alg: 1}}}},
		"unknown operation":       &HomeRequest{Op: "grab", Tracker: one, Session: two, Swarm: link},
		"join without site":       &HomeRequest{Op: OpJoin, Tracker: one, Session: two, Swarm: link, Title: "/a", Role: "full"},
		"join with a wrong role":  &HomeRequest{Op: OpJoin, Tracker: one, Session: two, Swarm: link, Site: "demo", Title: "/a", Role: "king"},
		"backward range":          &HomeRequest{Op: OpUpdate, Tracker: one, Session: two, Swarm: link, Range: &signal.Range{From: 2, To: 1}},
		"less than no viewer":     &HomeRequest{Op: OpUpdate, Tracker: one, Session: two, Swarm: link, Want: 8, Learns: &none},
		"viewer without tracker":  &HomeAnswer{Peers: []Target{{Peer: one, Role: "viewer"}}},
		"seed with a tracker":     &HomeAnswer{Peers: []Target{{Peer: one, Role: "seed", Tracker: two}}},
		"claims of many":          &HomeRequest{Op: OpStats, Tracker: one, Session: two, Swarm: link, Claims: make([]Claim, signal.MaxStatPeers+1)},
		"claim without a peer":    &HomeRequest{Op: OpStats, Tracker: one, Session: two, Swarm: link, Claims: []Claim{{}}},
		"negative claim":          &HomeRequest{Op: OpStats, Tracker: one, Session: two, Swarm: link, Claims: []Claim{{one, signal.PeerStats{In: -1}}}},
		"unknown kind":            &Delivery{Kind: "letter"},
		"place below the base":    &Delivery{Kind: KindReplaced, Session: one, Tracker: two, Stream: &Stream{From: two, N: 2, Base: 3}},
		"stream without a sender": &Delivery{Kind: KindReplaced, Session: one, Tracker: two, Stream: &Stream{N: 2, Base: 2}},
		"torrent of no socket":    &Delivery{Kind: KindTorrent, Torrent: &Torrent{Op: TorrentEnd, Tracker: one}},
		"anew of a socket":        &Delivery{Kind: KindTorrent, Torrent: &Torrent{Op: TorrentAnew, Tracker: one, Socket: 1}},
		"torrent of no kind":      &Delivery{Kind: KindTorrent, Torrent: &Torrent{Op: "shout", Tracker: one, Socket: 1}},
		"place of a seed's":       &SeedDelivery{Kind: KindSignal, Signal: offer(), Stream: &Stream{From: two, N: 2, Base: 3}},
		"torrent without words":   &Delivery{Kind: KindTorrent, Torrent: &Torrent{Op: TorrentHear, Tracker: one, Socket: 1}},
		"torrent missing":         &Delivery{Kind: KindTorrent},
		"ack without a sender":    &Ack{Next: 1},
		"part beyond its level":   &HomeRequest{Op: OpLeave, Tracker: one, Session: two, Swarm: link, Part: 2, Level: 1},
		"split without end":       &HomeAnswer{Split: &Part{Level: 11}},
		"signal missing":          &Delivery{Kind: KindSignal},
		"hash of a viewer's":      &Delivery{Kind: KindSignal, Signal: &Signal{Subnet: strings.Repeat("x", maxHash+1), Signal: offer().Signal}},
		"long sdp":                &Delivery{Kind: KindSignal, Signal: long},
		"hash of a seed's":        &SeedDelivery{Kind: KindSignal, Signal: offer(), Subnet: strings.Repeat("x", maxHash+1)},
		"title missing":           &SeedDelivery{Kind: KindTitle},
		"answer, long manifest":   &HomeAnswer{Manifest: strings.Repeat("m", signal.MaxManifest+1)},
		"title, long manifest":    &SeedDelivery{Kind: KindTitle, Title: &Title{Site: "demo", Title: "/a", Swarm: two, Beside: strings.Repeat("m", signal.MaxManifest+1)}},
		"title of no seed":        &SeedDelivery{Kind: KindTitle, Title: &Title{Site: "demo", Title: "/a", Swarm: two, Seeds: []signal.ID{{}}}},
		"title of less than none": &SeedDelivery{Kind: KindTitle, Title: &Title{Site: "demo", Title: "/a", Swarm: two, Credited: &less}},
		"fleet without id":        &SeedBeat{Seed: one, Fleet: &SeedFleet{Address: "10.0.0.7:4602"}},
		"fleet by name":           &SeedBeat{Seed: one, Fleet: &SeedFleet{ID: make([]byte, 8), Address: "seed-0.seed:4602"}},
		"fleet without port":      &SeedBeat{Seed: one, Fleet: &SeedFleet{ID: make([]byte, 8), Address: "10.0.0.7:0"}},
		"switch of no site":       &RevokeMessage{Switches: []Switch{{Reason: "operator", At: 1}}},
		"switch of no time":       &RevokeMessage{Switches: []Switch{{Site: "demo", Reason: "operator", Off: true}}},
		"switch for no reason":    &RevokeList{Switches: []Switch{{Site: "demo", At: 1}}},
		"too many switches":       &RevokeMessage{Switches: make([]Switch, cluster.MaxSwitches+1)},
		"revocation of nothing":   &RevokeMessage{Revocations: []signal.Revocation{{Site: "demo", Prefix: "/"}}},
		"revocation of key, site": &RevokeMessage{Revocations: []signal.Revocation{{KeyID: make([]byte, 8), Site: "demo", Prefix: "/", MinIssuedAt: 1}}},
	} {
		if err := m.Validate(); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := Encode(m); err == nil {
			t.Errorf("%s: encoded", name)
		}
		if b, err := json.Marshal(m); err == nil && Decode(b, m) == nil {
			t.Errorf("%s: decoded", name)
		}
	}
	if err := Decode([]byte(strings.Repeat(" ", MaxMessage+1)), &TrackerBeat{}); err == nil {
		t.Error("a body above the limit was decoded")
	}
}

func TestEverySubjectHasAKind(t *testing.T) {
	for subject, want := range map[string]string{
		SubjectTrackerBeat: "beat-tracker", SubjectSeedBeat: "beat-seed", SubjectHome(one): "home", SubjectDeliver(one): "tracker-deliver", SubjectAck(one): "ack", SubjectProbe(one): "probe",
		SubjectSeedDeliver(one): "seed-deliver", SubjectRevoke: "revoke", SubjectRevokeList: "revoke-list", SubjectRevokeKept: "revoke-kept", SubjectSeedSignal(one): "seed-signal", SubjectSeedAck(one): "ack", "_INBOX.x.y": "answer", "foo": "other",
	} {
		if got := Kind(subject); got != want || !slices.Contains(SubjectKinds, got) {
			t.Errorf("%s is %s, want %s", subject, got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	kinds := map[reflect.Type]bool{}
	for _, m := range bodies() {
		b, err := Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		kinds[reflect.TypeOf(m).Elem()] = true
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for kind := range kinds {
			m := reflect.New(kind).Interface().(Message)
			if Decode(b, m) != nil {
				continue
			}
			if longest, err := json.Marshal(m); err == nil && len(longest) > MaxMessage { // text that grows by escaping
				continue
			}
			once, err := Encode(m)
			if err != nil {
				t.Fatalf("%T: decoded but not encoded: %v", m, err)
			}
			back := reflect.New(kind).Interface().(Message)
			if err := Decode(once, back); err != nil {
				t.Fatalf("%T: decoded once but not twice: %v\n%s", m, err, once)
			}
			if twice, err := Encode(back); err != nil || !bytes.Equal(once, twice) {
				t.Fatalf("%T: does not survive encoding: %v\n%s\n%s", m, err, once, twice)
			}
		}
	})
}
