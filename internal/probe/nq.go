package probe

import (
	"net/http"
	"net/url"
)

// largeDownload is the body of the responsiveness draft's large download, bytes.
const largeDownload = "8000000000"

// serveNQ says where clients of draft-ietf-ippm-responsiveness find their tests. The names that end in https_… are those of its first
// versions, which clients still read.
func (s *Server) serveNQ(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.admit(w, r, 0); !ok {
		return
	}
	base := url.URL{Scheme: "http", Host: r.Host}
	if r.TLS != nil {
		base.Scheme = "https"
	}
	at := func(path string, query url.Values) string {
		if token := r.URL.Query().Get("access_token"); token != "" {
			query.Set("access_token", token)
		}
		u := base
		u.Path, u.RawQuery = path, query.Encode()
		return u.String()
	}
	large := at("/probe/v1/download", url.Values{"bytes": {largeDownload}})
	small, upload := at("/probe/v1/small", url.Values{}), at("/probe/v1/upload", url.Values{})
	writeJSON(w, map[string]any{"version": 1, "urls": map[string]string{
		"large_download_url": large, "small_download_url": small, "upload_url": upload,
		"large_https_download_url": large, "small_https_download_url": small, "https_upload_url": upload,
	}})
}
