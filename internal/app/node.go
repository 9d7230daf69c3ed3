package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Where Kubernetes tells a pod of its API server, by its conventions.
const (
	serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"
	maxNode        = 4 << 20 // bytes: a node lists its images
)

// nodeReader asks a Kubernetes API server for a node, with a pod's own account. One GET of one object, once: a client library
// of Kubernetes is larger than this whole program.
type nodeReader struct {
	host, port string // of the API server
	folder     string // of the account's token and the server's authority
}

func (p seedParts) nodeAddresses(ctx context.Context) ([]netip.Addr, error) {
	return nodeReader{os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"), serviceAccount}.external(ctx, p.config.Node)
}

// external are a node's ExternalIPs.
func (n nodeReader) external(ctx context.Context, node string) (all []netip.Addr, err error) {
	if n.host == "" || n.port == "" {
		return nil, errors.New("this is no pod of Kubernetes: KUBERNETES_SERVICE_HOST and _PORT are not set")
	}
	body, err := n.get(ctx, "/api/v1/nodes/"+url.PathEscape(node))
	if err != nil {
		return nil, err
	}
	var object struct {
		Status struct {
			Addresses []struct{ Type, Address string }
		}
	}
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, fmt.Errorf("the API server's answer: %w", err)
	}
	for _, a := range object.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); a.Type == "ExternalIP" && err == nil {
			all = append(all, ip)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("node %s has no ExternalIP: announce its address itself, or ask a STUN server (stun:HOST:PORT)", node)
	}
	return all, nil
}

// get reads what is at a path of the API server.
func (n nodeReader) get(ctx context.Context, path string) ([]byte, error) {
	token, err := os.ReadFile(filepath.Join(n.folder, "token"))
	if err != nil {
		return nil, fmt.Errorf("the pod has no service account's token: %w (automountServiceAccountToken; deploy/k8s/components/node-address)", err)
	}
	authority, err := os.ReadFile(filepath.Join(n.folder, "ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s: no certificate in it", filepath.Join(n.folder, "ca.crt"))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+net.JoinHostPort(n.host, n.port)+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxNode))
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode == http.StatusForbidden:
		return nil, fmt.Errorf("the API server does not let this pod's account read nodes (a ClusterRole does: deploy/k8s/components/node-address)")
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the API server answers %s", response.Status)
	}
	return body, nil
}
