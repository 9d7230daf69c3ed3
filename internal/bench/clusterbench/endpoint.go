package clusterbench

import (
	"net/http"
	"net/netip"

	"github.com/leeway-video/leeway/internal/tracker"
	"github.com/leeway-video/leeway/internal/wire/signal"
	"github.com/leeway-video/leeway/internal/wsconn"
)

func endpoint(t *tracker.Tracker) http.Handler {
	sockets := wsconn.Config{Subprotocol: signal.Subprotocol, MaxMessage: signal.MaxMessage, Refused: t.Rejected, Crowded: t.Crowded}
	return wsconn.Handler(sockets, func(c *wsconn.Conn, r *http.Request) wsconn.Receiver {
		at, _ := netip.ParseAddrPort(r.RemoteAddr)
		return t.Accept(c, tracker.Visitor{Address: at.Addr()})
	})
}
