// Package k8s holds the manifests; its test reads what of them is no Kubernetes.
package k8s

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// TestNATSServersKnowTheirPassword: the server reads nats.conf with the variables that nats.yaml gives it, whatever a password looks like.
func TestNATSServersKnowTheirPassword(t *testing.T) {
	text, err := os.ReadFile("components/nats/nats.yaml")
	if err != nil {
		t.Fatal(err)
	}
	values := regexp.MustCompile(`\{name: (NATS_\w+), value: '(.*)'\}`).FindAllStringSubmatch(string(text), -1)
	for _, password := range []string{"9e5", "0x1f", "-_Ab", "true", "8k"} {
		t.Setenv("POD_NAME", "nats-0")
		for _, v := range values {
			t.Setenv(v[1], strings.ReplaceAll(v[2], "$(LEEWAY_NATS_PASSWORD)", password))
		}
		options, err := server.ProcessConfigFile("components/nats/nats.conf")
		if err != nil {
			t.Fatalf("%s: %v", password, err)
		}
		if options.Password != password || options.Cluster.Password != password || options.ServerName != "nats-0" || options.Port != 4222 {
			t.Errorf("%s: %q for clients, %q for servers", password, options.Password, options.Cluster.Password)
		}
		if len(options.Routes) != 3 {
			t.Errorf("%s: routes %v", password, options.Routes)
		}
		for _, route := range options.Routes {
			if got, _ := route.User.Password(); got != password || route.User.Username() != options.Cluster.Username {
				t.Errorf("%s: route %v", password, route)
			}
		}
	}
}
