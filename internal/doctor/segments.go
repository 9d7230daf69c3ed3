package doctor

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/leeway-video/leeway/internal/originhttp"
)

// needsManifest is why checks of segments cannot run.
const needsManifest = "the manifest could not be read"

func checkSegments(ctx context.Context, e *examination) []Finding {
	m := e.manifest
	if m == nil {
		return skipped(needsManifest)
	}
	s := m.segments[len(m.segments)/2] // the first of a live stream may be about to leave it
	most := int64(maxSample)
	if s.ranged {
		most = min(most, s.last-s.first+1)
	}
	a := e.get(ctx, "segment", s.url, most, s.first, true)
	if found := a.trouble(); found != nil {
		return found
	}
	e.segment = &a
	if a.response.StatusCode == http.StatusPartialContent {
		return ok("a segment came from %s, by range", a.response.Request.URL.Host)
	}
	if s.ranged {
		return fail("range-ignored", "segments are byte ranges of a file, and the server answers Range with the whole file", "have the server answer Range with 206 and Content-Range")
	}
	return warn("range-ignored", "the server ignores Range: what peers did not bring of a segment is fetched as a whole again", "have the server answer Range with 206 and Content-Range")
}

// checkCORS looks at what a browser wants where page and media are of different origins: TLS on a page of https, and headers.
func checkCORS(_ context.Context, e *examination) []Finding {
	if e.manifest == nil || e.segment == nil {
		return skipped("manifest or segment did not come")
	}
	page, other := e.cfg.PageOrigin, 0
	for _, a := range []answer{e.manifest.answer, e.manifest.list, *e.segment} {
		if at, mixed := a.mixed(page); mixed {
			return fail("media-insecure", "a page of https may not fetch the "+a.what+" "+plainURL(at), "serve manifests and segments over https")
		}
		if originOf(a.url) == page {
			continue
		}
		other++
		if allowed := a.response.Header.Get("Access-Control-Allow-Origin"); allowed != "*" && !strings.EqualFold(allowed, page) {
			return fail("cors-missing", fmt.Sprintf("a page of %s may not read the %s: Access-Control-Allow-Origin of %s is %q", page, a.what, originOf(a.url), allowed),
				"have the server of the media send Access-Control-Allow-Origin: "+page+" (or *) with manifests and segments; if that is not the page's origin, give --page-origin")
		}
	}
	if other == 0 {
		return ok("page and media are of one origin, %s", page)
	}
	return ok("pages of %s may read manifest and segments", page)
}

// mixed says whether a page of this origin may not fetch it, because it is of https and a URL on the way is of http. Browsers trust this
// machine without TLS.
func (a answer) mixed(page string) (at string, is bool) {
	for _, at := range []string{a.asked, a.url} {
		if strings.HasPrefix(page, "https://") && strings.HasPrefix(originOf(at), "http://") && !loopbackHost(at) {
			return at, true
		}
	}
	return "", false
}

// checkShareable asks of the answers what a seed asks before it passes a body on.
func checkShareable(_ context.Context, e *examination) []Finding {
	if e.segment == nil {
		return skipped("no segment came")
	}
	if err := originhttp.Shareable(e.segment.response); err != nil {
		return fail("not-shareable", "seeds do not pass on such a segment: "+reason(err),
			"have the server send segments without Set-Cookie, Vary (but Origin, Accept-Encoding), Content-Encoding, and without private or no-store in Cache-Control")
	}
	return ok("the segment's headers let it be shared")
}

// reason is the last part of an error that names what was refused.
func reason(err error) string {
	text := err.Error()
	if _, rest, found := strings.Cut(text, "refused: "); found {
		return rest
	}
	return text
}
