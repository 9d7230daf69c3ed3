package armwire

import (
	"errors"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/testkit/spec"
)

type vectors struct {
	Messages []struct{ Name, Text, Wire string }
	Refused  []struct {
		Name, Text string
		Code       Code
		Field      *string
	}
}

func readVectors(t testing.TB) vectors { return spec.Vectors[vectors](t, "arm.json") }

// read reads a whole message, as an arm or a controller does.
func read(text []byte) (m Message, value any, err *Error) {
	m, err = Decode(text)
	if err != nil {
		return m, nil, err
	}
	command := m.IsCommand()
	switch m.Kind {
	case Register:
		value, err = of[RegisterBody](m, command)
	case AddMediaSource:
		value, err = of[SourceBody](m, command)
	case RemoveMediaSource, SourceDone:
		value, err = of[SourceName](m, command)
	case CreateSession:
		value, err = of[SessionBody](m, command)
	case GenerateOffer, GenerateAnswer:
		value, err = of[OfferBody](m, command)
	case HandleOffer, HandleAnswer:
		value, err = of[DescriptionBody](m, command)
	case Trickle:
		value, err = of[CandidateBody](m, command)
	case WebRTCUp:
		value, err = of[UpBody](m, command)
	case ICEState:
		value, err = of[ICEStateBody](m, command)
	case SelectedPair:
		value, err = of[PairBody](m, command)
	case Media:
		value, err = of[MediaBody](m, command)
	case Recording:
		value, err = of[RecordingBody](m, command)
	case Statistics:
		value, err = of[StatisticsBody](m, command)
	case Hangup:
		if command {
			value, err = of[Empty](m, command)
		} else {
			value, err = of[HangupBody](m, command)
		}
	case Failure:
		value, err = of[ErrorBody](m, command)
	case Success:
		value, err = of[SourceReply](m, command)
	default:
		value, err = of[Empty](m, command)
	}
	return m, value, err
}

func of[T any, B body[T]](m Message, command bool) (any, *Error) {
	if command {
		v, err := DecodeCommand[T, B](m)
		return v, err
	}
	v, err := DecodeBody[T, B](m)
	return v, err
}

func TestMessagesOfTheVectors(t *testing.T) {
	for _, c := range readVectors(t).Messages {
		m, value, err := read([]byte(c.Text))
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		b, failed := Encode(m.Kind, m.Transaction, m.ID, value)
		if failed != nil || string(b) != c.Wire {
			t.Errorf("%s: %s, %v, expected %s", c.Name, b, failed, c.Wire)
		}
	}
}

func TestRefusedOfTheVectors(t *testing.T) {
	for _, c := range readVectors(t).Refused {
		_, _, err := read([]byte(c.Text))
		if err == nil || err.Code != c.Code || c.Field != nil && err.Field != *c.Field {
			t.Errorf("%s: %v, expected %s", c.Name, err, c.Code)
		}
	}
}

func TestAWrongCommandCanBeAnswered(t *testing.T) {
	m, err := Decode([]byte(`{"jattack":"attack","transaction":"t1","id":"s"}`))
	if err == nil || m.Transaction != "t1" || m.ID != "s" {
		t.Errorf("%+v, %v: the answer needs the transaction", m, err)
	}
}

func TestSizesAreBounded(t *testing.T) {
	if _, err := Decode(make([]byte, MaxMessage+1)); err == nil || err.Code != BadMessage {
		t.Errorf("a message above the limit: %v", err)
	}
	if _, err := Encode(HandleOffer, "t", "s", DescriptionBody{SDP: strings.Repeat("x", MaxMessage)}); err == nil {
		t.Error("a message above the limit was written")
	}
	_, _, err := read([]byte(`{"jattack":"handle-offer","transaction":"t","body":{"sdp":"` + strings.Repeat("x", MaxSDP+1) + `"}}`))
	if err == nil || err.Field != "sdp" {
		t.Errorf("a description above the limit: %v", err)
	}
}

func TestErrorsSayWhereAndWhy(t *testing.T) {
	var err error = &Error{Code: BadField, Field: "rate", Reason: "0; 8 to 100"}
	var typed *Error
	if !errors.As(err, &typed) || !strings.Contains(err.Error(), "bad-field: rate: 0") {
		t.Error(err)
	}
	if long := Fail(Failed, "%s", strings.Repeat("x", 9*MaxText)); len(long.Reason) != MaxText {
		t.Errorf("a reason of %d bytes", len(long.Reason))
	}
}

// FuzzRead: whatever comes is an error or a message that is written as it is read.
func FuzzRead(f *testing.F) {
	v := readVectors(f)
	for _, c := range v.Messages {
		f.Add([]byte(c.Text))
	}
	for _, c := range v.Refused {
		f.Add([]byte(c.Text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, value, err := read(text)
		if err != nil {
			if err.Code == "" || err.Reason == "" || len(err.Error()) > 4*MaxText {
				t.Errorf("error %+v", err)
			}
			return
		}
		b, failed := Encode(m.Kind, m.Transaction, m.ID, value)
		if failed != nil {
			t.Fatal(failed)
		}
		m2, again, err := read(b)
		if err != nil {
			t.Fatalf("%s from %s: %v", b, text, err)
		}
		if c, _ := Encode(m2.Kind, m2.Transaction, m2.ID, again); string(c) != string(b) {
			t.Errorf("%s, then %s", b, c)
		}
	})
}
