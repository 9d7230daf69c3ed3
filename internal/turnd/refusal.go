package turnd

import (
	"encoding/binary"
	"net"
	"sync"

	"github.com/pion/stun/v4"
)

// pion answers a request with a wrong username or password with 400, which says that the request is malformed. RFC 8489 (9.2.4) has it
// answered with 401, with realm and nonce, and browsers say of that alone that a relay refuses: Firefox tells a page nothing of a 400.

// refusals are the clients whose credentials pion has just found wrong, until it writes its answer. Both are done by the goroutine that
// reads from the client, so there are never more of them than such goroutines.
type refusals struct {
	realm string

	mu sync.Mutex
	of map[clientKey]struct{} // guarded by mu
}

func (r *refusals) note(client net.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[clientKey]struct{}{}
	}
	r.of[keyOf(client)] = struct{}{}
}

// take says whether a client's credentials were wrong, and forgets it.
func (r *refusals) take(client net.Addr) bool {
	key := keyOf(client)
	r.mu.Lock()
	defer r.mu.Unlock()
	_, was := r.of[key]
	delete(r.of, key)
	return was
}

// failed says of a datagram that it is the reply to a request that failed.
func failed(p []byte) bool {
	kind, ok := stunKind(p)
	return ok && kind&classMask == classError
}

// answer is what a client gets of the reply to a request of its that failed: pion's, or 401 where its credentials were wrong. The
// nonce is that of the request, which pion has found good.
func (r *refusals) answer(reply, request []byte, client net.Addr) []byte {
	if !r.take(client) {
		return reply
	}
	if answer := unauthorized(reply, request, r.realm); answer != nil {
		return answer
	}
	return reply
}

// unauthorized is a reply to request with code 401 in place of one with 400; nil: reply is another one, or request had no nonce.
func unauthorized(reply, request []byte, realm string) []byte {
	was, asked := &stun.Message{Raw: reply}, &stun.Message{Raw: request}
	if was.Decode() != nil || asked.Decode() != nil || was.TransactionID != asked.TransactionID || was.Type.Class != stun.ClassErrorResponse {
		return nil
	}
	var code stun.ErrorCodeAttribute
	var nonce stun.Nonce
	if code.GetFrom(was) != nil || code.Code != stun.CodeBadRequest || nonce.GetFrom(asked) != nil {
		return nil
	}
	answer, err := stun.Build(stun.NewTransactionIDSetter(was.TransactionID), was.Type, &stun.ErrorCodeAttribute{Code: stun.CodeUnauthorized}, nonce, stun.NewRealm(realm))
	if err != nil {
		return nil
	}
	return answer.Raw
}

// request is the STUN request that a datagram begins with, or nothing.
func request(p []byte) []byte {
	if kind, ok := stunKind(p); !ok || kind&classMask != classRequest {
		return nil
	}
	return p[:min(len(p), stunHeader+int(binary.BigEndian.Uint16(p[2:])))]
}
