package egress_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/varve-dev/varve/internal/egress"
)

func TestWhichAddressesARuleAllows(t *testing.T) {
	t.Parallel()
	const public, private, never = "public", "private", "never"
	for list, want := range map[string]string{
		"8.8.8.8 1.1.1.1 172.15.255.255 172.32.0.1 100.63.255.255 100.128.0.1 192.0.3.1 223.255.255.255": public,
		"2606:4700:4700::1111 2001:4860:4860::8888 2a00:1450:4001::1 2003::1":                            public,
		"127.0.0.1 127.255.255.254 10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1":        private,
		"::1 fc00::1 fd12:3456::1": private,
		"0.0.0.0 0.1.2.3 100.64.0.1 100.100.100.200 100.127.255.255 169.254.169.254 169.254.170.2":    never,
		"192.0.0.170 192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1":        never,
		"224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255":                                         never,
		":: ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::127.0.0.1 fe80::1 fe80::1%eth0 febf::1 fec0::1 ff02::1": never,
		"64:ff9b::7f00:1 64:ff9b:1::1 2001::1 2001:0:53aa:64c::1 2001:db8::1 2002:7f00:1:: 3fff::1":   never,
		"100::1 5f00::1 4000::1 fd00:ec2::254 ::1%lo":                                                 never,
	} {
		for text := range strings.FieldsSeq(list) {
			a := netip.MustParseAddr(text)
			for _, r := range []egress.Rule{{}, {Public: true}, {Private: true}, {Public: true, Private: true}} {
				allowed := want == public && r.Public || want == private && r.Private
				if got := r.Allows(a); got != allowed {
					t.Errorf("%+v, %s (%s): %v", r, a, want, got)
				}
			}
		}
	}
	if (egress.Rule{Public: true, Private: true}).Allows(netip.Addr{}) {
		t.Error("no address at all is allowed")
	}
}

// spellings are hosts that lead to this machine, or might: what the resolver of this test is asked for answers with an
// address of this machine, too.
var spellings = []string{
	"127.0.0.1", "127.1", "127.0.1", "127.127.127.127", "2130706433", "0x7f000001", "0x7f.0x0.0x0.0x1", "0177.0.0.1",
	"017700000001", "0177.0x0.0.1", "127.0.0.1.", "127.0.0.01", "0", "0.0.0.0", "00.0.0.0", "0x0", "[::1]", "[::]",
	"[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]",
	"[::127.0.0.1]", "[::ffff:0:127.0.0.1]", "[::1%25lo]", "[fe80::1%25lo]", "[64:ff9b::127.0.0.1]", "[2002:7f00:1::]",
	"[2001:0:7f00:1::]", "[fd00:ec2::254]", "169.254.169.254", "100.100.100.200", "10.0.0.1", "192.168.0.1", "172.16.0.1",
	"224.0.0.1", "255.255.255.255", "localhost", "LOCALHOST", "localhost.", "ip6-localhost", "trap.example",
	"trap.example.", "flip.example", "１２７.０.０.１", "127。0。0。1", "①②⑦.⓪.⓪.①",
}

// trap serves a port that must not be reached, and counts its connections.
func trap(t *testing.T) (port string, connects *atomic.Int32) {
	t.Helper()
	connects = &atomic.Int32{}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	all, err := net.Listen("tcp", ":0") // all of this machine's addresses
	if err != nil {
		t.Fatal(err)
	}
	server.Listener.Close()
	server.Listener = all
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connects.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	_, port, err = net.SplitHostPort(all.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port, connects
}

// get sends a request to every spelling.
func get(t *testing.T, d *net.Dialer, port string) (refused int) {
	t.Helper()
	client := egress.Client(egress.Transport(d, 4))
	client.Timeout = time.Minute
	t.Cleanup(client.CloseIdleConnections)
	for _, host := range spellings {
		for range 2 { // flip.example has another address the second time
			response, err := client.Get("http://" + host + ":" + port)
			if err == nil {
				response.Body.Close()
			}
			if errors.Is(err, egress.ErrRefused) {
				refused++
			}
		}
	}
	return refused
}

func TestNoSpellingOfAnAddressLeadsIntoThisMachine(t *testing.T) {
	t.Parallel()
	port, connects := trap(t)
	d := egress.Dialer(egress.Rule{Public: true})
	d.Resolver = resolver(t)
	if refused := get(t, d, port); connects.Load() != 0 || refused < 50 {
		t.Errorf("%d connections, %d requests refused; want none, and at least 50", connects.Load(), refused)
	}
	// The same requests without a rule, but that nothing leaves this machine: the trap works.
	plain := &net.Dialer{Resolver: d.Resolver, Control: func(_, address string, _ syscall.RawConn) error {
		if a := netip.MustParseAddrPort(address).Addr().Unmap(); !a.IsLoopback() && !a.IsUnspecified() {
			return errors.New("not this machine")
		}
		return nil
	}}
	if get(t, plain, port); connects.Load() < 20 {
		t.Errorf("%d connections of a dialer without a rule, want at least 20", connects.Load())
	}
}

func TestARuleForPrivateAddressesReachesThisMachine(t *testing.T) {
	t.Parallel()
	port, connects := trap(t)
	client := egress.Client(egress.Transport(egress.Dialer(egress.Rule{Private: true}), 1))
	response, err := client.Get("http://127.0.0.1:" + port)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if connects.Load() != 1 {
		t.Errorf("%d connections, want 1", connects.Load())
	}
}

func TestARedirectIsTheAnswer(t *testing.T) {
	t.Parallel()
	port, connects := trap(t)
	server := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:"+port, http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	client := egress.Client(egress.Transport(egress.Dialer(egress.Rule{Private: true}), 1))
	response, err := client.Post(server.URL, "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusTemporaryRedirect || connects.Load() != 0 {
		t.Errorf("status %d, %d connections to where it leads", response.StatusCode, connects.Load())
	}
}

func TestNoProxyOfTheEnvironmentIsUsed(t *testing.T) {
	port, connects := trap(t)
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:"+port)
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:"+port)
	d := egress.Dialer(egress.Rule{Public: true, Private: true})
	d.Resolver = resolver(t)
	if egress.Transport(d, 1).Proxy != nil {
		t.Error("the transport asks for a proxy")
	}
	if _, err := egress.Client(egress.Transport(d, 1)).Get("http://nowhere.example/"); err == nil || connects.Load() != 0 {
		t.Errorf("%v, %d connections to the proxy", err, connects.Load())
	}
}

// resolver returns a resolver that asks a server of this test: flip.example has a public address the first time and
// this machine's later, trap.example and localhost have this machine's, and no other name exists.
func resolver(t *testing.T) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go serveNames(server)
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

func serveNames(server net.PacketConn) {
	flips := 0
	buffer := make([]byte, 1500)
	for {
		n, from, err := server.ReadFrom(buffer)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buffer[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		m.Response, m.Additionals = true, nil
		name := strings.TrimSuffix(strings.ToLower(q.Name.String()), ".")
		address := [4]byte{127, 0, 0, 1}
		if name == "flip.example" && q.Type == dnsmessage.TypeA {
			if flips++; flips == 1 {
				address = [4]byte{198, 18, 0, 1} // for tests of networks: nothing is there
			}
		}
		switch {
		case !strings.HasSuffix(name, "localhost") && name != "flip.example" && name != "trap.example":
			m.RCode = dnsmessage.RCodeNameError
		case q.Type == dnsmessage.TypeA:
			m.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}, Body: &dnsmessage.AResource{A: address},
			}}
		}
		packed, err := m.Pack()
		if err == nil {
			server.WriteTo(packed, from)
		}
	}
}

func TestAServerSaysHowLongToWaitInSecondsOrByADate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		date := func(wait time.Duration) string { return time.Now().Add(wait).UTC().Format(http.TimeFormat) }
		for said, want := range map[string]time.Duration{
			"3": 3 * time.Second, "1.5": 1500 * time.Millisecond, "-3": 0, "soon": 0, "": 0, "NaN": 0, "1e99": 24 * time.Hour,
			date(time.Hour): time.Hour, date(-time.Hour): 0, date(1000 * time.Hour): 24 * time.Hour,
			time.Now().Add(time.Minute).UTC().Format(time.RFC850): time.Minute, // as old servers write it
		} {
			if got := egress.RetryAfter(http.Header{"Retry-After": {said}}); got != want {
				t.Errorf("%q: %v, want %v", said, got, want)
			}
		}
	})
}
