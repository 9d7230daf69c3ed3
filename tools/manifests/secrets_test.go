package manifests

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/yaml"
)

// workload is what a Deployment and a StatefulSet share.
type workload struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct{ Template corev1.PodTemplateSpec }
}

func workloads(t *testing.T, built resmap.ResMap) (all []workload) {
	t.Helper()
	for _, r := range built.Resources() {
		if !slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, r.GetKind()) {
			continue
		}
		var w workload
		decodeInto(t, r, &w)
		all = append(all, w)
	}
	return all
}

func decodeInto(t *testing.T, r interface{ AsYAML() ([]byte, error) }, into any) {
	t.Helper()
	text, err := r.AsYAML()
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// unhashed is the name that a generator was given: kustomize appends a dash and ten characters.
func unhashed(name string) string {
	if i := strings.LastIndexByte(name, '-'); i > 0 && len(name)-i == 11 {
		return name[:i]
	}
	return name
}

// secretKeys lists what each workload has of secrets, as SECRET/KEY, by environment and by files.
func secretKeys(t *testing.T, built resmap.ResMap) map[string][]string {
	t.Helper()
	keys := map[string][]string{} // of each Secret that the overlay writes
	for _, r := range built.Resources() {
		if r.GetKind() == "Secret" {
			var s corev1.Secret
			decodeInto(t, r, &s)
			keys[s.Name] = slices.Sorted(maps.Keys(s.Data))
		}
	}
	has := map[string][]string{}
	for _, w := range workloads(t, built) {
		of := map[string]bool{}
		all := func(secret string) {
			if len(keys[secret]) == 0 {
				of[unhashed(secret)+"/*"] = true // made elsewhere: with any keys
			}
			for _, k := range keys[secret] {
				of[unhashed(secret)+"/"+k] = true
			}
		}
		pod := w.Spec.Template.Spec
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			for _, e := range c.Env {
				if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
					of[unhashed(e.ValueFrom.SecretKeyRef.Name)+"/"+e.ValueFrom.SecretKeyRef.Key] = true
				}
			}
			for _, e := range c.EnvFrom {
				if e.SecretRef != nil {
					all(e.SecretRef.Name)
				}
			}
		}
		items := func(secret string, list []corev1.KeyToPath) {
			for _, i := range list {
				of[unhashed(secret)+"/"+i.Key] = true
			}
			if len(list) == 0 {
				all(secret)
			}
		}
		for _, v := range pod.Volumes {
			if v.Secret != nil {
				items(v.Secret.SecretName, v.Secret.Items)
			}
			if v.Projected != nil {
				for _, s := range v.Projected.Sources {
					if s.Secret != nil {
						items(s.Secret.Name, s.Secret.Items)
					}
				}
			}
		}
		has[w.Metadata.Name] = slices.Sorted(maps.Keys(of))
	}
	return has
}

// rendered are the overlays, ready to be applied.
func rendered(t *testing.T) map[string]resmap.ResMap {
	t.Helper()
	dev := overlay(t, "dev", prepared)
	production := overlay(t, "production", private)
	edit(t, filepath.Join(production, "settings.env"), filled)
	out := map[string]resmap.ResMap{}
	for name, dir := range map[string]string{"dev": dev, "two-nodes": filepath.Join(dev, "../../../../test/kube/two-nodes"), "production": production} {
		built, err := build(dir)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = built
	}
	return out
}

// TestEachServiceHasItsOwnSecrets and none of another: by environment, by files, in every overlay.
func TestEachServiceHasItsOwnSecrets(t *testing.T) {
	wanted := map[string][]string{
		"tracker":    {"leeway-bus-tls/ca.crt", "leeway-token-keys/*", "leeway-tracker/LEEWAY_NATS_PASSWORD", "leeway-tracker/LEEWAY_TRACKER_SECRET", "leeway-tracker/LEEWAY_TURN_SECRETS"},
		"seed":       {"leeway-bus-tls/ca.crt", "leeway-seed/LEEWAY_NATS_PASSWORD", "leeway-seed/LEEWAY_SEED_FLEET_SECRET"},
		"turn":       {"leeway-turn/LEEWAY_TURN_SECRETS"}, // no user of the bus either
		"nats":       {"leeway-bus-tls/ca.crt", "leeway-bus-tls/tls.crt", "leeway-bus-tls/tls.key", "leeway-nats/ROUTES_PASSWORD", "leeway-nats/SEED_PASSWORD", "leeway-nats/TRACKER_PASSWORD"},
		"grafana":    {"leeway-grafana/GRAFANA_PASSWORD"},
		"prometheus": nil,
		"origin":     {"leeway-tls/tls.crt", "leeway-tls/tls.key"},
	}
	for name, built := range rendered(t) {
		has := secretKeys(t, built)
		for _, service := range []string{"tracker", "seed", "turn", "nats", "grafana", "prometheus"} {
			if _, there := has[service]; !there {
				t.Errorf("%s has no %s", name, service)
			}
		}
		for service, keys := range has {
			want, known := wanted[service]
			if service == "tracker" && name != "production" { // it ends TLS itself
				want = slices.Sorted(slices.Values(append(slices.Clone(want), "leeway-tls/tls.crt", "leeway-tls/tls.key")))
			}
			if !known || !slices.Equal(keys, want) {
				t.Errorf("%s: %s has the secrets %q, and needs %q", name, service, keys, want)
			}
		}
		configMaps(t, name, built)
	}
}

// configMaps holds no secret: what is private is in a Secret, not in what every pod reads.
func configMaps(t *testing.T, name string, built resmap.ResMap) {
	t.Helper()
	for _, r := range built.Resources() {
		if r.GetKind() != "ConfigMap" {
			continue
		}
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range secretValues {
			if strings.Contains(string(text), value) {
				t.Errorf("%s: the ConfigMap %s holds the secret %s", name, r.GetName(), value)
			}
		}
	}
}

// TestTheBusIsReachedByTLSAsTheServicesOwnUser: trackers and seeds name their user, the servers' authority and an address with TLS; the
// relay has neither address nor user.
func TestTheBusIsReachedByTLSAsTheServicesOwnUser(t *testing.T) {
	for name, built := range rendered(t) {
		for _, w := range workloads(t, built) {
			values := map[string]string{}
			for _, e := range w.Spec.Template.Spec.Containers[0].Env {
				values[e.Name] = e.Value
			}
			switch service := w.Metadata.Name; service {
			case "tracker", "seed":
				if values["LEEWAY_NATS_USER"] != service || !strings.HasPrefix(values["LEEWAY_NATS_URL"], "tls://") || values["LEEWAY_NATS_CA_FILE"] != "/etc/leeway-bus/ca.crt" {
					t.Errorf("%s: %s reaches the bus by %v", name, service, values)
				}
			default:
				for key := range values {
					if strings.HasPrefix(key, "LEEWAY_NATS") {
						t.Errorf("%s: %s has %s", name, service, key)
					}
				}
			}
		}
	}
}

// TestNothingListensOnANodesAddressButForViewers: a pod on its node's network has its admin port on loopback, where its probes look; only
// turn-metrics, which is asked for by name, has it elsewhere. Other pods have no port of their node but the seed's.
func TestNothingListensOnANodesAddressButForViewers(t *testing.T) {
	onNode := 0
	for name, built := range rendered(t) {
		for _, w := range workloads(t, built) {
			pod, c := w.Spec.Template.Spec, w.Spec.Template.Spec.Containers[0]
			for _, p := range c.Ports {
				if p.HostPort != 0 && !pod.HostNetwork && p.Name != "viewers" {
					t.Errorf("%s: %s has the port %d of its node", name, w.Metadata.Name, p.HostPort)
				}
			}
			if !pod.HostNetwork {
				continue
			}
			onNode++
			udp := slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.ContainerPort == 3478 && p.Protocol == corev1.ProtocolUDP })
			if w.Metadata.Name != "turn" || !udp {
				t.Errorf("%s: %s on its node's network, with ports %v", name, w.Metadata.Name, c.Ports)
			}
			admin, host, scraped := "127.0.0.1:9465", "127.0.0.1", ""
			if name == "two-nodes" { // turn-metrics
				admin, host, scraped = "$(POD_IP):9465", "", "true"
				if c.Env[0].Name != "POD_IP" {
					t.Errorf("%s: POD_IP is not there when %s is set", name, c.Env[1].Name)
				}
			}
			for _, e := range c.Env {
				if e.Name == "LEEWAY_TURN_ADMIN" && e.Value != admin {
					t.Errorf("%s: the relay's admin port is %s", name, e.Value)
				}
			}
			for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
				if probe.HTTPGet.Host != host || probe.HTTPGet.Port.IntValue() != 9465 {
					t.Errorf("%s: a probe asks %q, port %s", name, probe.HTTPGet.Host, probe.HTTPGet.Port.String())
				}
			}
			if got := w.Spec.Template.Annotations["prometheus.io/scrape"]; got != scraped {
				t.Errorf("%s: the relay asks to be scraped: %q", name, got)
			}
		}
	}
	if onNode != 3 {
		t.Errorf("%d relays in three overlays", onNode)
	}
}
