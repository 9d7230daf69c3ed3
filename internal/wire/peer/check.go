package peer

func (m Hello) check() Reason {
	if m.MinVersion < 1 || m.MinVersion > m.MaxVersion || m.MaxRequests < 1 || m.MaxRequests > MaxRequests {
		return ReasonLimit
	}
	return ""
}

func checkCount(n int) Reason {
	if n < 1 || n > maxCount {
		return ReasonCount
	}
	return ""
}

func (e *HaveEntry) check() Reason {
	switch e.State {
	case HoldsNone:
		if e.Pieces != 0 {
			return ReasonLimit
		}
		return ""
	case HoldsPartial, HoldsComplete:
		if e.Pieces < 1 || e.Pieces > MaxPieces {
			return ReasonLimit
		}
	default:
		return ReasonLimit
	}
	if e.State == HoldsComplete {
		return ""
	}
	if len(e.Bitmap) != BitmapLen(int(e.Pieces)) {
		return ReasonLimit
	}
	if pad := len(e.Bitmap)*8 - int(e.Pieces); e.Bitmap[len(e.Bitmap)-1]&(1<<pad-1) != 0 {
		return ReasonPadding
	}
	return ""
}

func (m Have) check() Reason {
	if r := checkCount(len(m.Entries)); r != "" {
		return r
	}
	for i := range m.Entries {
		if r := m.Entries[i].check(); r != "" {
			return r
		}
	}
	return ""
}

func (m CertificateRequest) check() Reason { return checkCount(len(m.Segments)) }

func (m Certificate) check() Reason { return checkCertificate(m.Raw) }

// checkCertificate bounds the bytes of a certificate.
func checkCertificate(raw []byte) Reason {
	switch {
	case len(raw) == 0:
		return ReasonShort
	case len(raw) > MaxCertificate:
		return ReasonLong
	}
	return ""
}

func (m CertificateNone) check() Reason {
	if m.Reason > NoneTooFewViewers {
		return ReasonLimit
	}
	tooLarge := m.ObjectLength > MaxSegment && m.ObjectLength <= MaxObject
	if m.Reason == NoneTooLarge && !tooLarge || m.Reason != NoneTooLarge && m.ObjectLength != 0 {
		return ReasonLimit
	}
	return ""
}

func (m Request) check() Reason {
	if m.Lane > Background {
		return ReasonLimit
	}
	if r := checkCount(len(m.Requests)); r != "" {
		return r
	}
	for _, r := range m.Requests {
		if r.Piece >= MaxPieces {
			return ReasonLimit
		}
	}
	return ""
}

func (m Cancel) check() Reason { return checkCount(len(m.IDs)) }

func (m Reject) check() Reason {
	if m.Reason > RejectOutOfRange {
		return ReasonLimit
	}
	return checkCount(len(m.IDs))
}

func (m Promote) check() Reason { return checkCount(len(m.IDs)) }

func (m Data) check() Reason {
	if len(m.Payload) == 0 {
		return ReasonShort
	}
	if int(m.Offset)+len(m.Payload) > PieceSize {
		return ReasonLimit
	}
	return ""
}

func (Ping) check() Reason { return "" }

func (Pong) check() Reason { return "" }

func (m Bye) check() Reason {
	if m.Reason > ByePolicy {
		return ReasonLimit
	}
	return ""
}
