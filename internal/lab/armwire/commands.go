package armwire

import (
	"cmp"
	"net/url"
	"slices"
)

// RegisterBody is what an arm says of itself.
type RegisterBody struct {
	Version     int    `json:"version"`
	Name        string `json:"name"` // 1–64 of the characters of an ID
	Token       string `json:"token,omitempty"`
	Cores       int    `json:"cores,omitempty"`
	MaxSessions int    `json:"max_sessions,omitempty"`
	PID         int    `json:"pid,omitempty"`
}

func (b *RegisterBody) check() *Error {
	switch {
	case b.Version != Version:
		return badField("version", "%d; %d is spoken here", b.Version, Version)
	case !validName(b.Name, false):
		return badField("name", nameRule)
	case len(b.Token) > MaxText:
		return badField("token", "at most %d bytes", MaxText)
	case b.Cores < 0 || b.MaxSessions < 0 || b.PID < 0:
		return badField("cores", "a count below 0")
	}
	return nil
}

// SourceKind says what a source sends.
type SourceKind string

// The kinds; all but RTP are extensions.
const (
	SourceRTP       SourceKind = "rtp"       // what comes on local UDP ports
	SourceSynthetic SourceKind = "synthetic" // packets that the arm makes up: of valid form, without a picture
	SourceData      SourceKind = "data"      // chunks on the session's data channel
	SourceForward   SourceKind = "forward"   // the media that another session receives
)

// Codec is of a media source.
type Codec string

// The codecs.
const (
	Opus Codec = "opus"
	VP8  Codec = "vp8"
	H264 Codec = "h264"
)

// TrackBody is one track of a media source.
type TrackBody struct {
	Codec   Codec `json:"codec"`
	Port    int   `json:"port,omitempty"`    // of an rtp source: UDP port on loopback; 0: the arm picks one
	Bitrate int   `json:"bitrate,omitempty"` // of a synthetic source, bit/s
}

func (t *TrackBody) check(field string, codecs ...Codec) *Error {
	switch {
	case t == nil:
		return nil
	case !slices.Contains(codecs, t.Codec):
		return badField(field+".codec", "%q; one of %v", clip(string(t.Codec)), codecs)
	case t.Port < 0 || t.Port > 65535 || t.Port > 0 && t.Port < 1024:
		return badField(field+".port", "%d; 0 or 1024 to 65535", t.Port)
	case t.Bitrate < 0 || float64(t.Bitrate) > MaxRate:
		return badField(field+".bitrate", "%d; 0 to %.0f", t.Bitrate, MaxRate)
	}
	return nil
}

// SourceBody is of add-media-source. Its reply is a SourceReply.
type SourceBody struct {
	Source   string     `json:"source"`
	Kind     SourceKind `json:"kind,omitempty"` // empty: rtp
	Audio    *TrackBody `json:"audio,omitempty"`
	Video    *TrackBody `json:"video,omitempty"`
	Rate     int        `json:"rate,omitempty"`        // of a data source: bit/s for each session
	Chunk    int        `json:"chunk,omitempty"`       // of a data source: bytes
	Session  string     `json:"session,omitempty"`     // of a forward source
	Duration int        `json:"duration_ms,omitempty"` // after which the source is done; 0: never
}

func (b *SourceBody) check() *Error {
	b.Kind = cmp.Or(b.Kind, SourceRTP)
	if !validName(b.Source, false) {
		return badField("source", nameRule)
	}
	if b.Duration < 0 || b.Duration > 7*24*3600*1000 {
		return badField("duration_ms", "%d; 0 to a week", b.Duration)
	}
	if err := b.Audio.check("audio", Opus); err != nil {
		return err
	}
	if err := b.Video.check("video", VP8, H264); err != nil {
		return err
	}
	media := b.Audio != nil || b.Video != nil
	switch b.Kind {
	case SourceRTP, SourceSynthetic:
		if !media {
			return badField("audio", "a source of kind %s has audio, video or both", b.Kind)
		}
		if b.Kind == SourceSynthetic && b.Video != nil && b.Video.Codec != VP8 {
			return badField("video.codec", "a synthetic source makes vp8")
		}
	case SourceData:
		if media {
			return badField("audio", "a source of kind data has no media")
		}
		if b.Rate < 8 || float64(b.Rate) > MaxRate {
			return badField("rate", "%d; 8 to %.0f bit/s", b.Rate, MaxRate)
		}
		if b.Chunk < MinChunk || b.Chunk > MaxChunk {
			return badField("chunk", "%d; %d to %d bytes", b.Chunk, MinChunk, MaxChunk)
		}
	case SourceForward:
		if !validName(b.Session, false) {
			return badField("session", nameRule)
		}
	default:
		return badField("kind", "%q; rtp, synthetic, data or forward", clip(string(b.Kind)))
	}
	return nil
}

// SourceReply says where a source of kind rtp listens; 0 is for a track that it does not have.
type SourceReply struct {
	AudioPort int `json:"audio_port,omitempty"`
	VideoPort int `json:"video_port,omitempty"`
}

func (b *SourceReply) check() *Error { return nil }

// SourceName is of remove-media-source and source-done.
type SourceName struct {
	Source string `json:"source"`
}

func (b *SourceName) check() *Error {
	if !validName(b.Source, false) {
		return badField("source", nameRule)
	}
	return nil
}

// Stack is what a session is made of.
type Stack string

// The stacks.
const (
	PeerConnection Stack = "peer-connection" // pion's; for every peer, with media
	Link           Stack = "link"            // Leeway's links; for peers that are Leeway's too, without media
)

// SessionBody is of create-session.
type SessionBody struct {
	Source string      `json:"source,omitempty"`
	Record bool        `json:"record,omitempty"` // what is received, in the folder that the arm was started with
	Stack  Stack       `json:"stack,omitempty"`  // empty: peer-connection
	Echo   bool        `json:"echo,omitempty"`   // chunks that come go back
	Viewer *ViewerBody `json:"viewer,omitempty"` // the session is a viewer of Leeway and has no description
}

// ViewerBody is a viewer that plays a title.
type ViewerBody struct {
	Manifest string `json:"manifest"`
	Tracker  string `json:"tracker,omitempty"` // empty: no peers
	Site     string `json:"site,omitempty"`
	Token    string `json:"token,omitempty"`
	Leave    int    `json:"leave_ms,omitempty"` // 0: at the film's end
}

func (b *SessionBody) check() *Error {
	b.Stack = cmp.Or(b.Stack, PeerConnection)
	if !validName(b.Source, true) {
		return badField("source", nameRule)
	}
	if b.Stack != PeerConnection && b.Stack != Link {
		return badField("stack", "%q; peer-connection or link", clip(string(b.Stack)))
	}
	if v := b.Viewer; v != nil {
		if b.Source != "" || b.Record || b.Echo {
			return badField("viewer", "a viewer has no source, echo or recording")
		}
		if !validURL(v.Manifest, "http", "https") {
			return badField("viewer.manifest", "an http or https address is expected")
		}
		if v.Tracker != "" && !validURL(v.Tracker, "ws", "wss") {
			return badField("viewer.tracker", "a ws or wss address is expected")
		}
		if len(v.Site) > MaxName || len(v.Token) > 8192 || v.Leave < 0 {
			return badField("viewer", "site of at most %d bytes, token of at most 8192, leave_ms of 0 or more", MaxName)
		}
	}
	return nil
}

func validURL(text string, schemes ...string) bool {
	u, err := url.Parse(text)
	return err == nil && len(text) <= 4096 && u.Host != "" && slices.Contains(schemes, u.Scheme)
}

// Direction of media, of RFC 8866.
type Direction string

// The directions; empty: the kind of media is not offered.
const (
	SendRecv Direction = "sendrecv"
	SendOnly Direction = "sendonly"
	RecvOnly Direction = "recvonly"
)

func (d Direction) valid() bool { return d == "" || d == SendRecv || d == SendOnly || d == RecvOnly }

// OfferBody is of generate-offer and generate-answer; an answer takes only Trickle.
type OfferBody struct {
	Audio   Direction `json:"audio,omitempty"`
	Video   Direction `json:"video,omitempty"`
	Data    int       `json:"data,omitempty"`    // data channels
	Trickle *bool     `json:"trickle,omitempty"` // false: the description has all candidates; default true
}

// Trickles says whether candidates come by events.
func (b *OfferBody) Trickles() bool { return b.Trickle == nil || *b.Trickle }

func (b *OfferBody) check() *Error {
	switch {
	case !b.Audio.valid():
		return badField("audio", "sendrecv, sendonly or recvonly")
	case !b.Video.valid():
		return badField("video", "sendrecv, sendonly or recvonly")
	case b.Data < 0 || b.Data > MaxChannels:
		return badField("data", "%d; 0 to %d channels", b.Data, MaxChannels)
	}
	return nil
}

// DescriptionBody is of handle-offer and handle-answer, and of the replies to generate-offer and generate-answer.
type DescriptionBody struct {
	SDP string `json:"sdp"`
}

func (b *DescriptionBody) check() *Error {
	if b.SDP == "" || len(b.SDP) > MaxSDP {
		return badField("sdp", "%d bytes; 1 to %d", len(b.SDP), MaxSDP)
	}
	return nil
}

// CandidateBody is of trickle. A candidate without text says that there are no more.
type CandidateBody struct {
	Candidate string `json:"candidate"`
	Mid       string `json:"mid,omitempty"`
	Line      int    `json:"line,omitempty"`
}

func (b *CandidateBody) check() *Error {
	if len(b.Candidate) > MaxText || len(b.Mid) > MaxName || b.Line < 0 || b.Line > 65535 {
		return badField("candidate", "at most %d bytes, mid of at most %d, line of 0 to 65535", MaxText, MaxName)
	}
	return nil
}

// Empty is the body of commands and replies that say nothing more.
type Empty struct{}

func (b *Empty) check() *Error { return nil }
