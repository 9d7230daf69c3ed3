package arm

import (
	"time"

	"github.com/leeway-video/leeway/internal/lab/armwire"
)

// own carries out commands that are not of a session that is there.
func (a *Arm) own(m armwire.Message) (any, *armwire.Error) {
	switch m.Kind {
	case armwire.AddMediaSource:
		b, err := armwire.DecodeCommand[armwire.SourceBody](m)
		if err != nil {
			return nil, err
		}
		return a.addSource(b)
	case armwire.RemoveMediaSource:
		b, err := armwire.DecodeCommand[armwire.SourceName](m)
		if err != nil {
			return nil, err
		}
		return nil, a.removeSource(b.Source)
	case armwire.CreateSession:
		b, err := armwire.DecodeCommand[armwire.SessionBody](m)
		if err != nil {
			return nil, err
		}
		return nil, a.create(m.ID, b)
	case armwire.GetState:
		return a.statistics(time.Now(), false), nil
	}
	return nil, armwire.Fail(armwire.BadMessage, "%s needs the id of a session", m.Kind)
}

// command carries out a command of a session.
func (a *Arm) command(m armwire.Message) (any, *armwire.Error) {
	a.mu.Lock()
	s := a.sessions[m.ID]
	a.mu.Unlock()
	if s == nil {
		return nil, armwire.Fail(armwire.UnknownSession, "%s", m.ID)
	}
	switch m.Kind {
	case armwire.GenerateOffer, armwire.GenerateAnswer:
		b, err := armwire.DecodeCommand[armwire.OfferBody](m)
		if err != nil {
			return nil, err
		}
		return s.generate(m.Kind, b)
	case armwire.HandleOffer, armwire.HandleAnswer:
		b, err := armwire.DecodeCommand[armwire.DescriptionBody](m)
		if err != nil {
			return nil, err
		}
		if m.Kind == armwire.HandleOffer {
			return nil, s.takeOffer(b.SDP)
		}
		return nil, s.takeAnswer(b.SDP)
	case armwire.Trickle:
		b, err := armwire.DecodeCommand[armwire.CandidateBody](m)
		if err != nil {
			return nil, err
		}
		return nil, s.candidate(b)
	}
	if _, err := armwire.DecodeCommand[armwire.Empty](m); err != nil {
		return nil, err
	}
	switch m.Kind {
	case armwire.DestroySession:
		a.destroy(s, "destroyed")
	case armwire.Hangup:
		s.mu.Lock()
		conn := s.conn
		s.mu.Unlock()
		if conn == nil {
			return nil, armwire.Fail(armwire.WrongState, "there is no connection")
		}
		s.closed(conn, "hangup")
	case armwire.GetState:
		return s.state(), nil
	}
	return nil, nil
}

func (a *Arm) create(id string, b armwire.SessionBody) *armwire.Error {
	if id == "" {
		return armwire.Fail(armwire.BadMessage, "create-session needs an id")
	}
	if b.Record && a.cfg.RecordDir == "" {
		return armwire.Fail(armwire.Unsupported, "the arm was started without a folder for recordings")
	}
	s := &session{arm: a, id: id, body: b, phase: created}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch src := a.sources[b.Source]; {
	case a.sessions[id] != nil:
		return armwire.Fail(armwire.Exists, "session %s", id)
	case len(a.sessions) >= a.cfg.MaxSessions:
		return armwire.Fail(armwire.Limit, "%d sessions", a.cfg.MaxSessions)
	case b.Source != "" && src == nil:
		return armwire.Fail(armwire.UnknownSource, "%s", b.Source)
	case b.Stack == armwire.Link && (b.Record || src != nil && !src.sendsChunks()):
		return armwire.Fail(armwire.Unsupported, "a session of the stack link has no media")
	default:
		s.source = src
	}
	if b.Viewer != nil {
		if err := s.watchTitle(*b.Viewer); err != nil {
			return err
		}
	}
	a.sessions[id] = s
	return nil
}

// destroy ends a session for good.
func (a *Arm) destroy(s *session, reason string) {
	a.mu.Lock()
	if a.sessions[s.id] == s {
		delete(a.sessions, s.id)
	}
	a.mu.Unlock()
	s.mu.Lock()
	conn, f, v, was := s.conn, s.flow, s.viewer, s.phase
	s.conn, s.flow, s.viewer, s.phase = nil, nil, nil, down
	s.live.Store(false)
	s.mu.Unlock()
	a.pacer.remove(f)
	if conn != nil {
		a.counts.closed(was == up, reason)
	}
	a.busy.Go(func() {
		a.closers <- struct{}{}
		if conn != nil {
			conn.close()
			s.event(armwire.Hangup, armwire.HangupBody{Reason: reason})
		}
		if v != nil {
			v.stop()
			a.counts.watched(v.report())
		}
		<-a.closers
		s.closing.Wait()
		s.event(armwire.Destroyed, nil)
	})
}

// generate makes an offer, or the answer to one that has come.
func (s *session) generate(kind armwire.Kind, b armwire.OfferBody) (any, *armwire.Error) {
	s.mu.Lock()
	conn, phase, src := s.conn, s.phase, s.source
	s.mu.Unlock()
	if s.body.Viewer != nil {
		return nil, armwire.Fail(armwire.WrongState, "a viewer negotiates by itself")
	}
	if kind == armwire.GenerateOffer {
		if phase != created && phase != down {
			return nil, armwire.Fail(armwire.WrongState, "generate-offer in phase %s", phase)
		}
		if src != nil && src.sendsChunks() && b.Data == 0 {
			b.Data = 1
		}
		var err *armwire.Error
		if conn, err = s.arm.stacks.connect(s, nil, b.Audio != "" || b.Video != "" || src != nil && !src.sendsChunks()); err != nil {
			return nil, err
		}
		s.enter(conn, offering, time.Time{})
		sdp, err := conn.offer(b)
		return s.described(conn, sdp, err)
	}
	if phase != answering {
		return nil, armwire.Fail(armwire.WrongState, "generate-answer in phase %s", phase)
	}
	s.enter(conn, connecting, time.Time{})
	sdp, err := conn.answer(b)
	return s.described(conn, sdp, err)
}

func (s *session) described(conn connection, sdp string, err *armwire.Error) (any, *armwire.Error) {
	if err != nil {
		s.closed(conn, "failed")
		return nil, err
	}
	return armwire.DescriptionBody{SDP: sdp}, nil
}

// enter notes the phase of a connection; asked is when the peer's description came, if it just did.
func (s *session) enter(conn connection, phase string, asked time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn, s.phase = conn, phase
	if !asked.IsZero() {
		s.asked = asked
	}
}

func (s *session) takeOffer(sdp string) *armwire.Error {
	s.mu.Lock()
	phase, src := s.phase, s.source
	s.mu.Unlock()
	if s.body.Viewer != nil || phase != created && phase != down {
		return armwire.Fail(armwire.WrongState, "handle-offer in phase %s", phase)
	}
	conn, err := s.arm.stacks.connect(s, &sdp, hasMedia(sdp) || src != nil && !src.sendsChunks())
	if err != nil {
		return err
	}
	s.enter(conn, answering, time.Now())
	if err := conn.takeOffer(sdp); err != nil {
		s.closed(conn, "failed")
		return err
	}
	return nil
}

func (s *session) takeAnswer(sdp string) *armwire.Error {
	s.mu.Lock()
	conn, phase := s.conn, s.phase
	s.mu.Unlock()
	if phase != offering {
		return armwire.Fail(armwire.WrongState, "handle-answer in phase %s", phase)
	}
	s.enter(conn, connecting, time.Now())
	if err := conn.takeAnswer(sdp); err != nil {
		s.closed(conn, "failed")
		return err
	}
	return nil
}

func (s *session) candidate(b armwire.CandidateBody) *armwire.Error {
	s.mu.Lock()
	conn, phase := s.conn, s.phase
	s.mu.Unlock()
	if conn == nil || phase == offering {
		return armwire.Fail(armwire.WrongState, "trickle in phase %s", phase)
	}
	return conn.candidate(b)
}
