package app

import (
	"net/http"

	"github.com/leeway-video/leeway/internal/webdist"
)

// publicMux routes the public port: WebSockets on / and /announce, questions about origins and reports of players to the tracker, the
// scripts, the page of the doctor, and what up adds.
func publicMux(bundle *webdist.Bundle, t trackerPorts, page http.Handler) (*http.ServeMux, error) {
	doctor, err := bundle.Doctor()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/leeway.js", bundle.Script(false))
	mux.Handle("/leeway-"+Version+".js", bundle.Script(true))
	for _, part := range bundle.Parts() {
		mux.Handle("/leeway-"+Version+"-"+part+".js", bundle.Part(part))
	}
	mux.Handle("/announce", t.announce)
	mux.Handle("/allowed", t.allowed)
	mux.Handle("/cmcd", t.cmcd)
	mux.Handle("/doctor", doctor)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" && r.Header.Get("Upgrade") != "" {
			t.socket.ServeHTTP(w, r)
			return
		}
		page.ServeHTTP(w, r)
	})
	return mux, nil
}

// trackerPage is what a browser sees that opens a tracker's address.
func trackerPage(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" {
		http.Error(w, "Nothing here. A tracker has WebSocket on /, the script on /leeway.js, and /doctor says what keeps a page from it.", http.StatusNotFound)
		return
	}
	w.Header().Set("Upgrade", "websocket")
	http.Error(w, "This is a Leeway tracker. It speaks WebSocket (leeway.v1) here; the script is on /leeway.js; /doctor says what keeps a page from it.", http.StatusUpgradeRequired)
}
