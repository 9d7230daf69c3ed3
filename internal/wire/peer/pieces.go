package peer

// BitmapLen is the number of bytes of a bitmap over pieces pieces.
func BitmapLen(pieces int) int { return (pieces + 7) / 8 }

// BitmapHas says whether the bitmap holds piece; most significant bit first.
func BitmapHas(bitmap []byte, piece int) bool {
	return piece>>3 < len(bitmap) && bitmap[piece>>3]&(0x80>>(piece&7)) != 0
}

// BitmapSet adds piece to the bitmap.
func BitmapSet(bitmap []byte, piece int) { bitmap[piece>>3] |= 0x80 >> (piece & 7) }

// CutSize is the payload of each message but the last when a piece of length bytes travels in messages of at
// most message bytes: the least number of messages, all alike.
func CutSize(length, message int) int {
	n := max((length+message-DataHeader-1)/(message-DataHeader), 1)
	return (length + n - 1) / n
}

// Negotiate returns the highest version that both hellos speak, or ErrVersion.
func Negotiate(a, b Hello) (uint8, error) {
	v := min(a.MaxVersion, b.MaxVersion)
	if v < a.MinVersion || v < b.MinVersion {
		return 0, ErrVersion
	}
	return v, nil
}
