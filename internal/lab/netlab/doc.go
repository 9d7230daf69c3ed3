// Package netlab builds networks on one machine: hosts in network namespaces, joined by lines of a given rate, delay,
// queue and loss, with NATs and firewalls where they are wanted. What runs in it is real: the kernel's TCP, browsers,
// pion, any process. Only the lines are emulated, by a process that moves packets between the hosts' TUN devices.
//
//	lab, err := netlab.New(netlab.Options{})
//	if err != nil { … }
//	defer lab.Close()
//
//	core := lab.Router("core")
//	origin, viewer := lab.Host("origin"), lab.Host("viewer")
//	lab.Connect(origin, core, netlab.Both(netlab.Link{Delay: 5 * time.Millisecond}))
//	lab.Connect(viewer, core, netlab.Path{
//		Down: netlab.Link{Rate: 5_000_000, Delay: 25 * time.Millisecond, Queue: 64 << 10, Loss: 0.001},
//		Up:   netlab.Link{Rate: 1_000_000, Delay: 25 * time.Millisecond, Queue: 32 << 10},
//	})
//	if err := lab.Start(); err != nil { … }
//
//	listener, err := origin.Listen(ctx, "tcp", netip.AddrPortFrom(origin.Addr(), 80).String())
//	conn, err := viewer.DialContext(ctx, "tcp", listener.Addr().String())
//	browser := viewer.Command(ctx, "chromium", …)
//	…
//	report, err := lab.Report()
//	if err := report.Certify(); err != nil { … } // this machine was too busy for the figures to mean anything
//
// Close, the end of the process and even its violent end leave nothing behind: namespaces, devices and every process
// in them go.
package netlab
