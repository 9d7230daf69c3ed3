// Package sibling is the codec of what the seeds of a fleet say to each other over HTTP (spec/cluster.md, "Seeds"): the
// target and the authorization of a question, and the frames of its answer.
package sibling

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Sizes and times.
const (
	MinSecret = 32              // characters of a fleet's secret
	MaxSkew   = 5 * time.Minute // between the clocks of two seeds
	MaxTarget = 256             // bytes of a question's target
)

// Path is what targets begin with.
const Path = "/leeway/v1/segments/"

const scheme = "Leeway "

// Content is what a certificate says of a segment's bytes: SHA-256 of its digests, one after the other.
type Content [sha256.Size]byte

// Question is what one seed asks another.
type Question struct {
	Segment segment.ID
	Swarm   signal.ID // whose title lists the segment
	Held    bool      // only if the other holds it
	Have    *Content  // of bytes that the asking seed holds: a newer certificate of the same is enough
}

// Target is the question as the target of a request.
func (q Question) Target() string {
	t := Path + q.Segment.String() + "?swarm=" + q.Swarm.Hex()
	if q.Held {
		t += "&held=1"
	}
	if q.Have != nil {
		t += "&have=" + hex.EncodeToString(q.Have[:])
	}
	return t
}

// ParseTarget reads what Target wrote, and nothing else.
func ParseTarget(target string) (Question, error) {
	var q Question
	path, query, _ := strings.Cut(target, "?")
	name, ok := strings.CutPrefix(path, Path)
	if !ok || len(target) > MaxTarget {
		return q, errors.New("sibling: the target is none of a segment")
	}
	var err error
	if q.Segment, err = segment.ParseID(name); err != nil {
		return q, fmt.Errorf("sibling: %w", err)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return q, fmt.Errorf("sibling: %w", err)
	}
	if err := parseHex(q.Swarm[:], values.Get("swarm")); err != nil {
		return q, fmt.Errorf("sibling: swarm: %w", err)
	}
	q.Held = values.Get("held") == "1"
	if have := values.Get("have"); have != "" {
		q.Have = &Content{}
		if err := parseHex(q.Have[:], have); err != nil {
			return q, fmt.Errorf("sibling: have: %w", err)
		}
	}
	if q.Target() != target {
		return q, errors.New("sibling: the target is not in its one form")
	}
	return q, nil
}

func parseHex(into []byte, text string) error {
	b, err := hex.DecodeString(text)
	if err != nil {
		return err
	}
	if len(b) != len(into) {
		return fmt.Errorf("%d bytes instead of %d", len(b), len(into))
	}
	copy(into, b)
	return nil
}

// Secret is what the seeds of a fleet share.
type Secret struct {
	id  FleetID
	key []byte
}

// FleetID names a fleet without telling its secret.
type FleetID [8]byte

// NewSecret makes one of the text in the configuration.
func NewSecret(text string) (*Secret, error) {
	if len(text) < MinSecret {
		return nil, fmt.Errorf("a secret of %d characters (%d are the least; leeway secret makes one)", len(text), MinSecret)
	}
	return &Secret{id: FleetID(sum([]byte(text), "leeway fleet")), key: sum([]byte(text), "leeway siblings")}, nil
}

func sum(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// Fleet is the ID of the fleet.
func (s *Secret) Fleet() FleetID { return s.id }

// Sign makes the authorization of a request from one seed to another.
func (s *Secret) Sign(from, to signal.ID, target string, now time.Time) string {
	ms := strconv.FormatInt(now.UnixMilli(), 10)
	return scheme + from.Hex() + "." + ms + "." + base64.RawURLEncoding.EncodeToString(s.mac(from, to, ms, target))
}

func (s *Secret) mac(from, to signal.ID, ms, target string) []byte {
	return sum(s.key, "leeway sibling v1\n"+to.Hex()+"\n"+from.Hex()+"\n"+ms+"\n"+target+"\n")
}

// Check says whether an authorization is of a sibling, for this request to this seed.
func (s *Secret) Check(authorization string, self signal.ID, target string, now time.Time) error {
	rest, ok := strings.CutPrefix(authorization, scheme)
	parts := strings.Split(rest, ".")
	if !ok || len(parts) != 3 || len(target) > MaxTarget {
		return errors.New("sibling: no authorization of a seed")
	}
	var from signal.ID
	if err := parseHex(from[:], parts[0]); err != nil {
		return fmt.Errorf("sibling: authorization: %w", err)
	}
	ms, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return fmt.Errorf("sibling: authorization: %w", err)
	}
	mac, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !hmac.Equal(mac, s.mac(from, self, parts[1], target)) {
		return errors.New("sibling: the authorization is of another secret, seed or request")
	}
	if off := now.Sub(time.UnixMilli(ms)).Abs(); off > MaxSkew {
		return fmt.Errorf("sibling: the authorization is %v off (keep the clocks of seeds together)", off.Round(time.Second))
	}
	return nil
}
