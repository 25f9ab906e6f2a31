package session

import (
	"slices"

	"github.com/google/uuid"
)

// Scope is a kind of routes that a caller may use.
type Scope string

// The scopes of a tenant's keys.
const (
	SessionsRead  Scope = "sessions:read"  // sessions, their messages, views, runs, policies; models, limits and usage
	SessionsWrite Scope = "sessions:write" // make and change sessions, append, import, make session tokens
	ResultsRead   Scope = "results:read"   // results, search, and the agent tools
	ScopeCompact  Scope = "compact"        // compact, preview, restore, recompact
	ScopePolicy   Scope = "policy"         // change policies, the tenant's and those of sessions
	ScopeExport   Scope = "export"         // export sessions and the tenant
	ScopeErase    Scope = "erase"          // erase sessions
	ScopeAdmin    Scope = "admin"          // the tenant's keys, its audit trail, and replays
)

// ScopeRead is what every session token has. In a caller it stands for SessionsRead and ResultsRead.
const ScopeRead Scope = "read"

// KeyScopes returns every scope that a key may have.
func KeyScopes() []Scope {
	return []Scope{
		SessionsRead, SessionsWrite, ResultsRead, ScopeCompact, ScopePolicy, ScopeExport, ScopeErase, ScopeAdmin,
	}
}

// TokenScopes returns every scope that a session token may have.
func TokenScopes() []Scope { return []Scope{ScopeRead, ScopeCompact} }

// OfTokens returns the scopes of callers that the scopes of a session token stand for.
func OfTokens(scopes []Scope) (meant []Scope) {
	for _, scope := range scopes {
		if scope == ScopeRead {
			meant = append(meant, SessionsRead, ResultsRead)
		} else {
			meant = append(meant, scope)
		}
	}
	return meant
}

// Role is a named set of scopes, for the key of a person.
type Role string

// The roles. Each may do what the one before it may.
const (
	Viewer   Role = "viewer"   // reads
	Operator Role = "operator" // besides, writes, compacts, changes policies and exports
	Admin    Role = "admin"    // everything
)

// Roles returns every role.
func Roles() []Role { return []Role{Viewer, Operator, Admin} }

// Scopes returns the scopes of a role, none for a role that there is not.
func (r Role) Scopes() []Scope {
	switch r {
	case Viewer:
		return []Scope{SessionsRead, ResultsRead}
	case Operator:
		return []Scope{SessionsRead, SessionsWrite, ResultsRead, ScopeCompact, ScopePolicy, ScopeExport}
	case Admin:
		return KeyScopes()
	}
	return nil
}

// CallerKind is what a caller holds.
type CallerKind string

// The kinds of callers.
const (
	TenantCaller   CallerKind = "key"      // a key of a tenant
	TokenCaller    CallerKind = "token"    // a session token
	OperatorCaller CallerKind = "operator" // a key of an operator, who belongs to no tenant
)

// Caller is who sent a request.
type Caller struct {
	Kind    CallerKind
	APIKey  uuid.UUID // the id of the key; of a token, the key that made it
	Tenant  uuid.UUID // Nil for an operator
	Session string    // the session that a token is for; "" for a key, which reaches all
	Key     uuid.UUID // of that session
	Token   uuid.UUID // the token's id
	Scopes  []Scope   // of keys, also for a token

	Suspended Suspension // of the tenant
}

// Address returns the session that a token is for.
func (c *Caller) Address() Address { return Address{Tenant: c.Tenant, ID: c.Session} }

// Bound reports whether the caller holds a session token.
func (c *Caller) Bound() bool { return c.Kind == TokenCaller }

// May reports whether the caller may use routes and tools of a scope.
func (c *Caller) May(scope Scope) bool { return slices.Contains(c.Scopes, scope) }

// Lacks returns the first of some scopes that the caller does not have and cannot give, "" for none. An operator gives
// all.
func (c *Caller) Lacks(scopes ...Scope) Scope {
	if c.Kind == OperatorCaller {
		return ""
	}
	for _, scope := range scopes {
		if !c.May(scope) {
			return scope
		}
	}
	return ""
}
