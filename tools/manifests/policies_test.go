package manifests

import (
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/resmap"
)

// end is one end of a connection: a pod of our namespace, a pod of another one, or an address outside the cluster.
type end struct {
	name      string
	labels    labels.Set
	namespace string // of another pod; empty: ours
	ports     []corev1.ContainerPort
	address   string // of what is no pod
}

// policies judges connections as Kubernetes defines NetworkPolicy. Nothing enforces policies where make kube-test runs.
type policies struct {
	t   *testing.T
	all []networkingv1.NetworkPolicy
}

func policiesOf(t *testing.T, built resmap.ResMap) *policies {
	t.Helper()
	p := &policies{t: t}
	for _, r := range built.Resources() {
		if r.GetKind() == "NetworkPolicy" {
			var one networkingv1.NetworkPolicy
			decodeInto(t, r, &one)
			p.all = append(p.all, one)
		}
	}
	return p
}

// allowed says whether a connection from a to b, to a port of b, passes what isolates either end.
func (p *policies) allowed(a, b end, protocol corev1.Protocol, port int32) bool {
	return p.passes(networkingv1.PolicyTypeEgress, a, b, protocol, port, b) && p.passes(networkingv1.PolicyTypeIngress, b, a, protocol, port, b)
}

// passes judges by the policies that isolate self; ports are those of target.
func (p *policies) passes(direction networkingv1.PolicyType, self, other end, protocol corev1.Protocol, port int32, target end) bool {
	if self.address != "" || self.namespace != "" {
		return true // no policy of ours
	}
	isolated := false
	for _, policy := range p.all {
		if !slices.Contains(policy.Spec.PolicyTypes, direction) || !p.selects(&policy.Spec.PodSelector, self.labels) {
			continue
		}
		isolated = true
		if direction == networkingv1.PolicyTypeEgress {
			for _, rule := range policy.Spec.Egress {
				if p.peer(rule.To, other) && p.port(rule.Ports, protocol, port, target) {
					return true
				}
			}
			continue
		}
		for _, rule := range policy.Spec.Ingress {
			if p.peer(rule.From, other) && p.port(rule.Ports, protocol, port, target) {
				return true
			}
		}
	}
	return !isolated
}

func (p *policies) selects(selector *metav1.LabelSelector, set labels.Set) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		p.t.Fatal(err)
	}
	return s.Matches(set)
}

func (p *policies) peer(list []networkingv1.NetworkPolicyPeer, other end) bool {
	for _, peer := range list {
		switch {
		case peer.IPBlock != nil:
			if other.address != "" && p.inBlock(peer.IPBlock, other.address) {
				return true
			}
		case other.address != "":
		case peer.NamespaceSelector == nil && other.namespace != "",
			peer.NamespaceSelector != nil && !p.selects(peer.NamespaceSelector, labels.Set{"kubernetes.io/metadata.name": other.where()}),
			peer.PodSelector != nil && !p.selects(peer.PodSelector, other.labels):
		default:
			return true
		}
	}
	return len(list) == 0
}

func (e end) where() string {
	if e.namespace == "" {
		return "leeway"
	}
	return e.namespace
}

func (p *policies) inBlock(block *networkingv1.IPBlock, address string) bool {
	at := netip.MustParseAddr(address)
	for _, except := range block.Except {
		if netip.MustParsePrefix(except).Contains(at) {
			return false
		}
	}
	return netip.MustParsePrefix(block.CIDR).Contains(at)
}

func (p *policies) port(list []networkingv1.NetworkPolicyPort, protocol corev1.Protocol, port int32, target end) bool {
	for _, rule := range list {
		of := corev1.ProtocolTCP
		if rule.Protocol != nil {
			of = *rule.Protocol
		}
		if of != protocol {
			continue
		}
		first := rule.Port.IntVal
		if rule.Port.StrVal != "" {
			i := slices.IndexFunc(target.ports, func(c corev1.ContainerPort) bool { return c.Name == rule.Port.StrVal })
			if i < 0 {
				continue
			}
			first = target.ports[i].ContainerPort
		}
		last := first
		if rule.EndPort != nil {
			last = *rule.EndPort
		}
		if port >= first && port <= last {
			return true
		}
	}
	return len(list) == 0
}

// withProbe is production with the network check.
func withProbe(t *testing.T) resmap.ResMap {
	t.Helper()
	at := overlay(t, "production", private)
	edit(t, filepath.Join(at, "kustomization.yaml"), func(s string) string {
		return strings.Replace(s, "# - ../../components/probe #", "- ../../components/probe #", 1)
	})
	edit(t, filepath.Join(at, "settings.env"), filled)
	built, err := build(at)
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// TestTheNetworkCheckCanBeAdded: its pod is as restricted as the others, and its image is by digest.
func TestTheNetworkCheckCanBeAdded(t *testing.T) {
	built := withProbe(t)
	restricted(t, built)
	wellFormed(t, built)
	for _, w := range workloads(t, built) {
		if w.Metadata.Name == "probe" {
			if image := w.Spec.Template.Spec.Containers[0].Image; !strings.Contains(image, "@sha256:") {
				t.Errorf("it runs %s", image)
			}
			return
		}
	}
	t.Error("it is not there")
}

// TestPoliciesLetThroughWhatIsNeededAndNothingElse judges the connections that production makes, and those that a service in other hands
// would like to make.
func TestPoliciesLetThroughWhatIsNeededAndNothingElse(t *testing.T) {
	built := withProbe(t)
	p := policiesOf(t, built)
	pods := map[string]end{}
	for _, w := range workloads(t, built) {
		pods[w.Metadata.Name] = end{name: w.Metadata.Name, labels: w.Spec.Template.Labels, ports: w.Spec.Template.Spec.Containers[0].Ports}
	}
	of := func(name string) end {
		if pod, ok := pods[name]; ok {
			return pod
		}
		if namespace, pod, ok := strings.Cut(name, "/"); ok {
			return end{name: name, namespace: namespace, labels: labels.Set{"app.kubernetes.io/name": pod}}
		}
		return end{name: name, address: netip.MustParseAddr(name).String()}
	}
	const tcp, udp = corev1.ProtocolTCP, corev1.ProtocolUDP
	type flow struct {
		from, to string
		protocol corev1.Protocol
		port     int32
	}
	const viewer, origin, metadata, apiServer, node, service = "198.51.100.7", "198.51.100.80", "169.254.169.254", "203.0.113.1", "10.0.0.5", "10.96.0.10"
	for _, f := range []flow{
		{"ingress/skipper", "tracker", tcp, 8080},
		{"prometheus", "tracker", tcp, 9464}, {"prometheus", "seed", tcp, 9464}, {"prometheus", apiServer, tcp, 6443}, {"grafana", "prometheus", tcp, 9090},
		{"monitoring/prometheus-adapter", "prometheus", tcp, 9090},
		{viewer, "probe", tcp, 8090}, {viewer, "probe", udp, 4601}, {"prometheus", "probe", tcp, 9464},
		{"tracker", "nats", tcp, 4222}, {"seed", "nats", tcp, 4222}, {"nats", "nats", tcp, 6222},
		{viewer, "seed", udp, 4600}, {"seed", viewer, udp, 50_000}, {"seed", "2001:db8::7", udp, 50_000}, {"tracker", viewer, udp, 4600}, {"tracker", node, udp, 4600},
		{"seed", "seed", tcp, 4602}, {"seed", origin, tcp, 443}, {"seed", "2001:db8::80", tcp, 80}, {"seed", apiServer, tcp, 443},
		{"tracker", "kube-system/coredns", udp, 53}, {"seed", "kube-system/coredns", tcp, 53}, {"prometheus", "kube-system/coredns", udp, 53}, {"nats", "kube-system/coredns", udp, 53},
	} {
		if !p.allowed(of(f.from), of(f.to), f.protocol, f.port) {
			t.Errorf("%s does not reach %s %s %d, and needs it", f.from, f.to, f.protocol, f.port)
		}
	}
	for _, f := range []flow{
		{"seed", metadata, tcp, 80}, {"seed", node, tcp, 443}, {"seed", service, tcp, 443}, {"seed", "127.0.0.1", tcp, 80}, {"seed", "192.168.1.1", udp, 4000}, {"seed", "100.64.0.1", tcp, 443},
		{"seed", node, udp, 53}, {"seed", viewer, udp, 53}, {"seed", viewer, udp, 123}, {"seed", "fd00:ec2::254", tcp, 80}, {"seed", "fe80::1", udp, 4000}, {"seed", "224.0.0.251", udp, 5353},
		{"seed", "tracker", tcp, 8080}, {"seed", "tracker", tcp, 9464}, {"seed", "nats", tcp, 6222}, {"seed", "nats", tcp, 8222}, {"seed", "prometheus", tcp, 9090}, {"seed", "default/db", tcp, 443},
		{"tracker", origin, tcp, 443}, {"tracker", metadata, udp, 4600}, {"tracker", metadata, tcp, 80}, {"tracker", apiServer, tcp, 443}, {"tracker", "seed", tcp, 4602}, {"tracker", "seed", tcp, 9464}, {"tracker", "nats", tcp, 6222},
		{"nats", viewer, tcp, 443}, {"nats", "tracker", tcp, 8080}, {"nats", apiServer, tcp, 443}, {"grafana", viewer, tcp, 443}, {"grafana", "tracker", tcp, 9464}, {"prometheus", viewer, tcp, 443},
		{"probe", origin, tcp, 443}, {"probe", metadata, tcp, 80}, {"probe", viewer, udp, 50_000}, {"probe", "nats", tcp, 4222}, {"probe", "tracker", tcp, 8080}, {viewer, "probe", tcp, 9464},
		{"default/stranger", "nats", tcp, 4222}, {"default/stranger", "tracker", tcp, 9464}, {"default/stranger", "seed", tcp, 9464}, {"default/stranger", "prometheus", tcp, 9090},
		{"default/stranger", "grafana", tcp, 3000}, {"default/stranger", "seed", tcp, 4602}, {viewer, "tracker", tcp, 9464}, {"prometheus", "nats", tcp, 4222}, {"grafana", "nats", tcp, 4222},
	} {
		if p.allowed(of(f.from), of(f.to), f.protocol, f.port) {
			t.Errorf("%s reaches %s %s %d", f.from, f.to, f.protocol, f.port)
		}
	}
	// A pod that no policy names reaches nothing either.
	if p.allowed(end{labels: labels.Set{"app": "new"}}, of(origin), tcp, 443) {
		t.Error("a pod without a policy reaches the world")
	}
}
