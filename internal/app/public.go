package app

import (
	"net/http"

	"github.com/leeway-video/leeway/internal/webdist"
)

// publicMux routes the public port: WebSockets on / and /announce and questions about origins to the tracker, the scripts, and what up adds.
func publicMux(bundle *webdist.Bundle, t trackerPorts, page http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/leeway.js", bundle.Script(false))
	mux.Handle("/leeway-"+Version+".js", bundle.Script(true))
	for _, part := range bundle.Parts() {
		mux.Handle("/leeway-"+Version+"-"+part+".js", bundle.Part(part))
	}
	mux.Handle("/announce", t.announce)
	mux.Handle("/allowed", t.allowed)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" && r.Header.Get("Upgrade") != "" {
			t.socket.ServeHTTP(w, r)
			return
		}
		page.ServeHTTP(w, r)
	})
	return mux
}

// trackerPage is what a browser sees that opens a tracker's address.
func trackerPage(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" {
		http.Error(w, "Nothing here. A tracker has WebSocket on / and the script on /leeway.js.", http.StatusNotFound)
		return
	}
	w.Header().Set("Upgrade", "websocket")
	http.Error(w, "This is a Leeway tracker. It speaks WebSocket (leeway.v1) here; the script is on /leeway.js.", http.StatusUpgradeRequired)
}
