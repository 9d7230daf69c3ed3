package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/leeway-video/leeway/internal/lab/armwire"
)

// clientMark in an endpoint stands for the client's number, so that each publisher has a stream of its own.
const clientMark = "{client}"

const (
	sdpType = "application/sdp"
	// mostAnswer bounds a description that an endpoint answers, bytes.
	mostAnswer = 64 << 10
	// mostComplaint is how much of an endpoint's error is shown, bytes.
	mostComplaint = 200
)

// EndpointError says that a WHIP or WHEP endpoint did not do as its specification has it.
type EndpointError struct {
	Endpoint string
	Status   string // of HTTP
	Text     string
}

// Error implements error.
func (e *EndpointError) Error() string {
	return fmt.Sprintf("load: %s answers %s: %s", e.Endpoint, e.Status, e.Text)
}

// endpoint is a client's WHIP or WHEP resource.
type endpoint struct {
	client   *http.Client
	token    string
	resource string // to be deleted; empty: there is none
}

// attach connects a client with another program's media server: a publisher by WHIP (RFC 9725), a viewer by WHEP (draft-ietf-wish-whep).
func (g *group) attach(ctx context.Context, c *client, a *Arm) error {
	s, err := a.Create(ctx, g.id(), armwire.SessionBody{Source: g.source})
	if err != nil {
		return err
	}
	c.sessions = append(c.sessions, s)
	way := armwire.SendOnly
	if g.Behavior == WHEP {
		way = armwire.RecvOnly
	}
	offer, err := s.describe(ctx, armwire.GenerateOffer, armwire.OfferBody{Video: way})
	if err != nil {
		return err
	}
	c.endpoint = &endpoint{client: g.u.http, token: g.Token}
	answer, err := c.endpoint.offer(ctx, strings.ReplaceAll(g.Endpoint, clientMark, strconv.Itoa(c.number)), offer.SDP)
	if err != nil {
		return err
	}
	if _, err := a.Call(ctx, armwire.HandleAnswer, s.ID, armwire.DescriptionBody{SDP: answer}); err != nil {
		return err
	}
	return s.WaitUp(ctx)
}

// request asks with the token.
func (e *endpoint) request(ctx context.Context, method, at string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if len(body) > 0 {
		r.Header.Set("Content-Type", sdpType)
	}
	if e.token != "" {
		r.Header.Set("Authorization", "Bearer "+e.token)
	}
	return e.client.Do(r)
}

// offer posts a description and returns the answer.
func (e *endpoint) offer(ctx context.Context, at, sdp string) (string, error) {
	response, err := e.request(ctx, http.MethodPost, at, []byte(sdp))
	if err != nil {
		return "", fmt.Errorf("load: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer+1))
	if err != nil {
		return "", fmt.Errorf("load: %s: %w", at, err)
	}
	wrong := func(format string, a ...any) error {
		return &EndpointError{at, response.Status, fmt.Sprintf(format, a...)}
	}
	if response.StatusCode != http.StatusCreated {
		return "", wrong("%.*s", mostComplaint, bytes.TrimSpace(text))
	}
	e.resource, err = resource(response)
	kind, _, bad := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case err != nil:
		return "", wrong("%v", err)
	case bad != nil || kind != sdpType:
		return "", wrong("the answer is %q, not %s", response.Header.Get("Content-Type"), sdpType)
	case len(text) > mostAnswer:
		return "", wrong("the answer has more than %d bytes", mostAnswer)
	}
	return string(text), nil
}

// resource is what a client deletes when it leaves.
func resource(r *http.Response) (string, error) {
	at, err := r.Location()
	if errors.Is(err, http.ErrNoLocation) {
		return "", errors.New("it has no Location, by which a client could leave")
	}
	if err != nil {
		return "", fmt.Errorf("its Location cannot be read: %w", err)
	}
	if !isHTTP(at) {
		return "", fmt.Errorf("its Location %q is no http or https address", at)
	}
	return at.String(), nil
}

func isHTTP(u *url.URL) bool { return u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") }

// leave deletes the resource.
func (e *endpoint) leave(ctx context.Context) error {
	if e.resource == "" {
		return nil
	}
	response, err := e.request(ctx, http.MethodDelete, e.resource, nil)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices && response.StatusCode != http.StatusNotFound {
		return &EndpointError{e.resource, response.Status, "the client left, and the server keeps its session"}
	}
	return nil
}
