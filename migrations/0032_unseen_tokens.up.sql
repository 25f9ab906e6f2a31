-- What callers report as used is compared with the triggers at once. unseen_tokens is what the provider counted beyond
-- the estimate of the view and the declared overhead when a usage came last: tools, a system prompt, what the estimate
-- misses. shrunk_tokens is by how much compactions have shrunk the view since then: the next usage may be of a request
-- that was made before.
ALTER TABLE sessions
    ADD COLUMN unseen_tokens bigint NOT NULL DEFAULT 0,
    ADD COLUMN shrunk_tokens bigint NOT NULL DEFAULT 0;
