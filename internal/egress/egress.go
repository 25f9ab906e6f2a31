// Package egress connects to hosts that an operator or a tenant has named, and to nothing that only this machine's own
// network can reach: a name that leads to a private address must not turn the product into a way into that network.
//
// Start at Transport. Rule.Allows has the list of addresses. The check is made on the address that is connected to,
// after every resolution of a name: no spelling of an address and no name that changes its address gets around it.
package egress

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// ErrRefused is the error of a connection to an address that the rule does not allow.
var ErrRefused = errors.New("the address is not allowed")

// Rule says which addresses may be connected to. The zero Rule allows none.
type Rule struct {
	Public  bool // addresses of the internet
	Private bool // this machine's, and those of private networks: 10/8, 172.16/12, 192.168/16 and fc00::/7

	Networks []netip.Prefix // of these private addresses those that are allowed where Private does not allow all
}

// Allows reports whether an address may be connected to. Whatever the rule says, these may not: link-local addresses,
// of which one gives away a cloud's credentials, shared ones (100.64/10), multicast, reserved ones, and those that
// stand for an IPv4 address in IPv6 (mapped, 6to4, Teredo, NAT64).
func (r Rule) Allows(a netip.Addr) bool {
	switch {
	case !a.IsValid() || a.Zone() != "" || a.Is4In6() || within(a, never):
		return false
	case a.IsLoopback() || a.IsPrivate():
		return r.Private || within(a, r.Networks)
	case a.Is4():
		return r.Public && !within(a, special)
	}
	return r.Public && global.Contains(a) && !within(a, special)
}

// global has all addresses of IPv6 that are assigned to the internet.
var global = netip.MustParsePrefix("2000::/3")

// never has the addresses in private ranges at which clouds serve the credentials of a machine.
var never = prefixes("fd00:ec2::/32")

// special has the blocks of IANA's registries of special-purpose addresses that are not globally reachable, or only by
// a translation, and multicast. Those of IPv6 are the ones within global.
var special = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24",
	"192.52.193.0/24", "192.88.99.0/24", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"224.0.0.0/4", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

func within(a netip.Addr, list []netip.Prefix) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Dialer returns a dialer that connects to the addresses that the rule allows. The error of others wraps ErrRefused.
func Dialer(r Rule) *net.Dialer {
	return &net.Dialer{
		Timeout: 15 * time.Second,
		Control: func(_, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("%w: it cannot be read", ErrRefused)
			}
			if !r.Allows(to.Addr()) {
				return fmt.Errorf("%w: %s", ErrRefused, to.Addr())
			}
			return nil
		},
	}
}

// Transport returns a transport that uses the dialer, at most that number of connections, and no proxy, whatever the
// environment says: a proxy would connect to addresses that the dialer never sees.
func Transport(d *net.Dialer, connections int) *http.Transport {
	return &http.Transport{
		DialContext:         d.DialContext,
		ForceAttemptHTTP2:   true,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 15 * time.Second,
		MaxConnsPerHost:     connections,
		MaxIdleConnsPerHost: connections,
		IdleConnTimeout:     time.Minute,
	}
}

// Client returns a client that follows no redirect: it returns the redirect as the answer.
func Client(t *http.Transport) *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}
