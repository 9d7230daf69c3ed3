package swarmbench

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
)

// wrongBytes compares what viewers were given with what the origin has, and returns the bytes of the segments that
// differ. What a live stream had may be gone: streamed are the digests of that, by path. The origin is asked once everything is over, so that the account of the origin is not touched.
func (s *servers) wrongBytes(outcomes []Outcome, streamed map[string]string) (int64, error) {
	truth := map[played]string{} // by what was asked for
	var wrong int64
	for _, o := range outcomes {
		for _, p := range o.Played {
			key := played{URL: p.URL, Ranged: p.Ranged, First: p.First, Last: p.Last}
			want, known := truth[key]
			if !known && !p.Ranged {
				want, known = streamed[pathOf(p.URL)]
			}
			if !known {
				var err error
				if want, err = s.digest(key); err != nil {
					return 0, err
				}
			}
			truth[key] = want
			if p.Digest != want {
				wrong += int64(p.Bytes)
			}
		}
	}
	return wrong, nil
}

// digest asks the origin for what a viewer was given.
func (s *servers) digest(of played) (string, error) {
	request, err := http.NewRequest(http.MethodGet, of.URL, nil)
	if err != nil {
		return "", err
	}
	expected := http.StatusOK
	if of.Ranged {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", of.First, of.Last))
		expected = http.StatusPartialContent
	}
	response, err := s.Client.Do(request)
	if err != nil {
		return "", fmt.Errorf("compare with the origin: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != expected {
		return "", fmt.Errorf("compare with the origin: %s: %s", of.URL, response.Status)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, response.Body); err != nil {
		return "", fmt.Errorf("compare with the origin: %s: %w", of.URL, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
