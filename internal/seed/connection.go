package seed

import (
	"sync"

	"github.com/leeway-video/leeway/internal/transfer"
)

// connection is what a viewer's link consists of, as far as it has come: nothing, link and session once it is answered, upload and
// account once it is open.
type connection struct {
	mu      sync.Mutex
	link    transfer.Link     // guarded by mu
	session *transfer.Session // guarded by mu
	upload  *transfer.Upload  // guarded by mu
	account *account          // guarded by mu
	isOpen  bool              // guarded by mu
	closed  bool              // guarded by mu: ended, or about to
}

// answered takes in link and session; false: it has ended meanwhile.
func (c *connection) answered(link transfer.Link, session *transfer.Session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link, c.session = link, session
	return !c.closed
}

// open takes in the account and what upload makes; false: there is no link, or it has ended meanwhile.
func (c *connection) open(a *account, upload func(transfer.Link, *transfer.Session) *transfer.Upload) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil || c.closed {
		return false
	}
	c.isOpen, c.account = true, a
	c.upload = upload(c.link, c.session)
	return true
}

// end notes that the link is to end, and returns what is to be told so.
func (c *connection) end() *transfer.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.session
}

// ended notes that the link has ended, and returns what is to be given back.
func (c *connection) ended() (*transfer.Upload, *account) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed, c.isOpen = true, false
	return c.upload, c.account
}

func (c *connection) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func (c *connection) parts() (*transfer.Session, *transfer.Upload) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session, c.upload
}

// wire is the link, nil until it is answered.
func (c *connection) wire() transfer.Link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link
}

// ticks returns link and session where the link is open.
func (c *connection) ticks() (transfer.Link, *transfer.Session, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link, c.session, c.isOpen
}

// payer is the session's account, nil until the link is open.
func (c *connection) payer() *account {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.account
}
