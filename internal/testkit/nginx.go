package testkit

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Nginx runs a real nginx on loopback until the test ends, with a server whose locations are given as they stand in a
// configuration. It returns http://HOST:PORT. The test is skipped where nginx is not installed.
//
// The socket is opened here and handed over, so that no port is free between its choice and its use, and requests that
// come before nginx has started wait.
func Nginx(t testing.TB, locations string) string {
	t.Helper()
	return "http://" + NginxServer(t, "server {\n    listen 443;\n"+locations+"\n  }")
}

// NginxServer is Nginx with a whole server block. The address takes the place of the port 443 in the block, and is returned as HOST:PORT.
func NginxServer(t testing.TB, server string) string {
	t.Helper()
	binary, err := exec.LookPath("nginx")
	if err != nil {
		if binary, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			t.Skip("nginx is not installed (apt install nginx-light): this test runs a real one")
		}
	}
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := socket.Addr().String()
	handed, err := socket.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	_ = socket.Close() // the copy stays open
	dir := t.TempDir()
	config := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(config, []byte(nginxConfig(dir, strings.Replace(server, "listen 443", "listen "+at, 1))), 0o600); err != nil {
		t.Fatal(err)
	}
	var said Output
	cmd := exec.Command(binary, "-p", dir, "-e", "stderr", "-c", config)
	cmd.Env = []string{"NGINX=3;", "PATH=" + os.Getenv("PATH")}
	cmd.ExtraFiles = []*os.File{handed}
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = handed.Close()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("nginx: %s", said.String())
		}
	})
	return at
}

func nginxConfig(dir, server string) string {
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;\n" // temporary folders of tests are their owner's alone
	}
	var temporary strings.Builder
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&temporary, "  %s_temp_path %s;\n", kind, strconv.Quote(filepath.Join(dir, kind)))
	}
	return user + `daemon off;
worker_processes 1;
pid ` + strconv.Quote(filepath.Join(dir, "pid")) + `;
events { worker_connections 256; }
http {
  access_log off;
` + temporary.String() + "  " + server + `
}
`
}
