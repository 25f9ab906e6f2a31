// Made by generate.mjs; do not edit.
export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description the answer to an append */
        Appended: {
            first_seq: number;
            last_seq: number;
            /** @description estimated tokens of these messages */
            tokens: components["schemas"]["Tokens"];
            /** @description estimated tokens of the view after them */
            context_tokens: components["schemas"]["Tokens"];
            /** @description of the log after them */
            total_tokens: components["schemas"]["Tokens"];
            /** @description whether a compaction was queued */
            compaction: components["schemas"]["Compaction"];
            /** @description the messages were in the log before */
            replayed: boolean;
            /** @description why the usage that was reported is not used; absent if it is, or if none was */
            usage_ignored?: string;
            /** @description what views will repair of these messages, or leave out; absent for nothing */
            warnings?: components["schemas"]["Warning"][];
            /** @description with `return=context`: the view with these messages, as a read of the context answers it */
            context?: components["schemas"]["View"];
            /** @description why there is no `context`; the append stands */
            problem?: components["schemas"]["Problem"];
        };
        /** @description what is known of the provider's cache of the session's prefix */
        Cache: {
            warm: boolean;
            /** @description since the last append */
            age_seconds: number;
            ttl_seconds: number;
        };
        /** @description an error in the form of OpenAI's API */
        ClientError: {
            message: string;
            /** @enum {unknown} */
            type: "authentication_error" | "not_found_error" | "server_error" | "invalid_request_error";
            code: string;
            param: string | null;
        };
        /**
         * @description what an append did about compaction: `queued`, it reached the trigger or the hard limit and asked for one; `already_queued`, it reached one of them while a compaction waits or runs; `none`, it reached none of them anew, and a compaction that an earlier append asked for may still wait (`GET …/runs`)
         * @enum {unknown}
         */
        Compaction: "none" | "queued" | "already_queued";
        /** @description a part of a message of which a view that fits the window has only the beginning and the end */
        Cut: {
            /** @description of the message; for messages of a checkpoint that are not known one by one, of the first */
            seq: number;
            /**
             * @description what was cut: a result, the arguments of a call, or a text
             * @enum {string}
             */
            kind: "result" | "call" | "text";
            /** @description brings back the whole: the part, or else its message */
            ref: string;
            tokens_before: number;
            tokens_after: number;
        };
        /** @description counts what was decided about the tool results and large calls of the view that no summary has taken */
        Decisions: {
            processed: number;
            applied: number;
            /** @description by what the tool does, `unknown` for a result without a call */
            by_category: {
                [key: string]: number;
            };
            /** @description by `decision` of an action */
            by_reason: {
                [key: string]: number;
            };
        };
        /** @description what a compaction gains and costs, in the price of an input token that no cache holds */
        Economy: {
            /** @description tokens by which the view becomes smaller */
            saved: number;
            /** @description tokens behind the kept prefix */
            rewritten: number;
            gain: number;
            cost: number;
            /** @description part of the cost: what is expected to be read back afterwards */
            read_back?: number;
            /** @description requests */
            horizon: number;
        };
        /** @description something that happened to a tenant's sessions or recompactions */
        Event: {
            /** Format: uuid */
            id: string;
            /** @description its place among the events of its tenant */
            n: number;
            type: components["schemas"]["EventType"];
            timestamp: components["schemas"]["Time"];
            /** @description that it is about, null for none */
            session: string | null;
            /** @description what the type tells, see docs/events.md; members are added in time */
            data: {
                [key: string]: unknown;
            };
        };
        /**
         * @description what an event tells
         * @enum {unknown}
         */
        EventType: "session.due" | "session.compacted" | "session.failed" | "session.quarantined" | "session.archived" | "session.restored" | "recompaction.started" | "recompaction.progress" | "recompaction.ended" | "budget.spent" | "webhook.disabled" | "webhook.test";
        /** @description a session whose compaction fails */
        Failing: {
            session: string;
            /** Format: uuid */
            key: string;
            /**
             * Format: uuid
             * @description the newest that failed
             */
            run: string;
            /** @description its own, one after the other */
            failures: number;
            /** @description of workers while they compacted it */
            deaths: number;
            error: string;
            since: components["schemas"]["Time"];
            failed_at: components["schemas"]["Time"];
            next_try_at: components["schemas"]["Time"];
            /** @description null: it is tried again soon */
            quarantined_at: components["schemas"]["Time"] | null;
        };
        /** @description what a session is a fork of */
        ForkedFrom: {
            /** @description the id of the other session; if that is erased, the fork is one of what it was a fork of, or none */
            session: string;
            /** @description through which they share their log */
            seq: number;
            /** @description the checkpoint with which the fork began, 0 for none */
            checkpoint: number;
        };
        /**
         * @description a provider's format of messages
         * @enum {unknown}
         */
        Format: "openai-chat" | "anthropic" | "openai-responses" | "gemini" | "ai-sdk";
        FormatOrNone: components["schemas"]["Format"] | null;
        /**
         * @description where a compaction starts
         * @enum {unknown}
         */
        From: "checkpoint" | "log";
        /** @description a passage that a search found */
        Hit: {
            /** @description reads the passage, from `line` on */
            ref: string;
            line: number;
            /** @description where to begin in a long line */
            char_offset: number;
            seq: number;
            role: string;
            part: number;
            /**
             * @description text, reasoning, call or result
             * @enum {string}
             */
            kind: "text" | "reasoning" | "call" | "result" | "image" | "file" | "opaque";
            tool?: string;
            /** @description those of the query that are in the passage */
            words: string[];
            score: number;
            snippet: string;
            /** @description the path that reads on from here */
            read_back: string;
        };
        /** @description the beginning of the view that keeps its bytes, and with them the provider's cache */
        KeptPrefix: {
            tokens: number;
            /** @description of the view after the compaction */
            share: number;
        };
        /** @enum {string} */
        KeyScope: "sessions:read" | "sessions:write" | "results:read" | "compact" | "policy" | "export" | "erase" | "admin";
        /** @description a message of a log */
        Message: {
            seq: number;
            role: string;
            format: components["schemas"]["Format"];
            tokens: components["schemas"]["Tokens"];
            client_id: string | null;
            created_at: components["schemas"]["Time"];
            /** @description when it was removed from the views; absent if it was not */
            removed_at?: components["schemas"]["Time"];
            /** @description of a superseded message: the seq of the one that has its client id now, or else that of the removal */
            superseded_by?: number;
            message: components["schemas"]["ProviderMessage"];
        };
        /** @description up to 16 keys of 1 to 64 characters, with values of up to 512 */
        Metadata: {
            [key: string]: string;
        };
        /** @description every member is optional */
        NewSession: {
            id?: string;
            /** @description if omitted, the first append decides */
            format?: components["schemas"]["Format"];
        } & {
            /** @description the registry of models has its window, unless `window_tokens` is set */
            model?: string;
            /** @description the model's context window */
            window_tokens?: number;
            /** @description tokens that are sent in addition to the messages, such as tool definitions; must be less than the window */
            overhead_tokens?: number;
            metadata?: components["schemas"]["Metadata"];
            /** @description merged (RFC 7396) into the session's own layer; null removes the layer */
            policy?: components["schemas"]["Policy"];
            /** @description when the session expires, in place of the tenant's retention (`{}` is never); null is the tenant's again. The key needs the scope `erase` */
            retention?: components["schemas"]["Retention"] | null;
        };
        /** @description counts what a bounded view leaves out */
        Omitted: {
            /** @description 0: not known, as only the end of a long log was read */
            units?: number;
            messages: number;
            tokens: components["schemas"]["Tokens"];
            /** @description of these messages */
            refs: string[];
        };
        /** @description reports that the view does not fit into its window although nothing more can be shortened */
        OverflowRisk: {
            /** @description tokens */
            over_by: number;
            recommendation: string;
        };
        /** Varve policy */
        Policy: {
            /**
             * @description the profile that the other fields change
             * @default default
             * @enum {string|null}
             */
            profile?: "default" | "tool-compaction" | "cortex" | "falai" | "llm-proxy" | "codelia" | null;
            /**
             * @description the master switch; if false, nothing is compacted or cut, not even on request
             * @default true
             */
            enabled?: boolean | null;
            /**
             * @description if false, a session is compacted only on request
             * @default true
             */
            auto?: boolean | null;
            /**
             * @description a replacement is used only if it is smaller than the original, and a cut keeps 256 characters or more
             * @default true
             */
            only_smaller?: boolean | null;
            /**
             * @description share of the window at which a compaction starts; `overhead_tokens` count
             * @default 0.9
             */
            trigger?: number | null;
            /**
             * @description tokens at which a compaction starts, in place of `trigger`; 0 uses `trigger`
             * @default 0
             */
            trigger_tokens?: ((number | 0 | unknown) | null) | 0 | unknown;
            /**
             * @description bytes of the view at which a compaction also starts, because pictures have few tokens; 0 is no limit. It also starts at half the images of a request, counted since the last one
             * @default 16777216
             */
            trigger_bytes?: ((number | 0 | unknown) | null) | 0 | unknown;
            /**
             * @description share of the window at which a compaction stops removing; below `trigger`; a trigger that is set alone and is not above it lowers it, in the profile's proportion
             * @default 0.3
             */
            target?: number | null;
            /**
             * @description tokens at which a compaction stops removing, in place of `target`; below `trigger_tokens`; 0 uses `target`
             * @default 0
             */
            target_tokens?: ((number | 0 | unknown) | null) | 0 | unknown;
            /**
             * @description bytes of large results with pictures or files in a view: of more, or of images beyond a third of those of a request, lines with refs replace the oldest, even protected ones or if `budget` is off; the newest stays; 0 is no limit
             * @default 8388608
             */
            media_bytes?: ((number | 0 | unknown) | null) | 0 | unknown;
            /**
             * @description share of the window at which a compaction starts even if `cache` or `economy` would wait; at least `trigger`
             * @default 0.95
             */
            hard?: number | null;
            cache?: {
                /**
                 * @description a compaction waits this long after the last append, until the prompt cache is cold
                 * @default 0
                 */
                ttl_seconds?: number | null;
            } | null;
            economy?: {
                /**
                 * @description a compaction waits if it costs more in a broken prompt cache than it saves
                 * @default false
                 */
                enabled?: boolean | null;
                /**
                 * @description price of an input token from the cache; an uncached token costs 1
                 * @default 0.1
                 */
                cache_read?: number | null;
                /**
                 * @description price of an input token that is written to the cache; at least `cache_read`
                 * @default 1.25
                 */
                cache_write?: number | null;
                /**
                 * @description how long the provider keeps a cached prefix after its last use
                 * @default 300
                 */
                ttl_seconds?: number | null;
                /**
                 * @description number of further requests that are expected to send the view
                 * @default 20
                 */
                horizon?: number | null;
                /**
                 * @description tokens that an agent is expected to read back after a compaction, at most half of what it removes; they count as its cost
                 * @default 5000
                 */
                read_back_tokens?: number | null;
            } | null;
            idle?: {
                /**
                 * @description an idle session is compacted below `trigger`, if that pays by the prices of `economy`
                 * @default true
                 */
                enabled?: boolean | null;
                /**
                 * @description share of the window from which an idle session is compacted; no effect at or above `trigger`
                 * @default 0.5
                 */
                from?: number | null;
                /**
                 * @description a session is idle this long after its last append; 0 is `economy.ttl_seconds`
                 * @default 0
                 */
                after_seconds?: number | null;
            } | null;
            tokens?: {
                /**
                 * @description how tokens are counted: by a linear estimate, or exactly by a vocabulary
                 * @default estimate
                 * @enum {string|null}
                 */
                tokenizer?: "estimate" | "o200k" | "cl100k" | "chars4" | "json-chars4" | "bytes4" | "runes4" | null;
                /**
                 * @description the triggers correct the estimate by the usage that callers report
                 * @default true
                 */
                calibrate?: boolean | null;
            } | null;
            tools?: {
                /**
                 * @description the table of well-known tools and what they do
                 * @default common
                 * @enum {string|null}
                 */
                table?: "common" | "llm-proxy" | null;
                /** @description what your own tools do, by name; overrides the table */
                operations?: {
                    [key: string]: "view_file" | "file_read" | "file_write" | "command_execution" | "search" | "list_dir" | "test_execution" | "other" | null;
                } | null;
                /**
                 * @description a result that begins with one of these texts is an error, in formats without a flag for it
                 * @default []
                 */
                errors?: string[] | null;
            } | null;
            protect?: {
                /**
                 * @description the newest units that are not changed; an oversized result in them is still capped
                 * @default 4
                 */
                last_units?: number | null;
                /**
                 * @description the newest messages that are not changed
                 * @default 0
                 */
                last_messages?: number | null;
                /**
                 * @description nothing since the n-th newest message of the user is changed
                 * @default 0
                 */
                last_turns?: number | null;
                /**
                 * @description the newest message with the user's own words is not changed
                 * @default true
                 */
                newest_user?: boolean | null;
                /**
                 * @description leading system messages are not changed; if false, a summary may replace them
                 * @default true
                 */
                system?: boolean | null;
                /**
                 * @description calls and results of these tools are not changed
                 * @default []
                 */
                tools?: string[] | null;
                /**
                 * @description limit of `last_turns`: of a turn larger than this share of the target, only the newest units are protected
                 * @default 0.3333333333333333
                 */
                max_turn_ratio?: number | null;
                /**
                 * @description above `hard`, protected content is changed until the view is below it: first results and arguments of the newest units are cut, then units leave, then the user's newest message is cut; leading system messages never change
                 * @default true
                 */
                yields?: boolean | null;
            } | null;
            cap?: {
                /**
                 * @description an oversized result is cut to its head and tail
                 * @default true
                 */
                enabled?: boolean | null;
                /**
                 * @description a result is cut when it is appended, and is never whole in a view
                 * @default false
                 */
                at_insertion?: boolean | null;
                /**
                 * @description more tokens are oversized; 0 is no limit
                 * @default 25000
                 */
                max_tokens?: ((number | 0 | unknown) | null) | 0 | unknown;
                /**
                 * @description more UTF-8 bytes are oversized; 0 is no limit
                 * @default 0
                 */
                max_bytes?: ((number | 0 | unknown) | null) | 0 | unknown;
                /**
                 * @description more characters are oversized; 0 is no limit
                 * @default 0
                 */
                max_chars?: ((number | 0 | unknown) | null) | 0 | unknown;
                /**
                 * @description more lines are oversized; 0 is no limit
                 * @default 0
                 */
                max_lines?: ((number | 0 | unknown) | null) | 0 | unknown;
                /**
                 * @description longer lines are cut to this; 0 is no limit
                 * @default 0
                 */
                max_line_chars?: ((number | 0 | unknown) | null) | 0 | unknown;
                /**
                 * @description more than this share of the window is oversized, except at insertion; 0 is no limit
                 * @default 0.4
                 */
                max_ratio?: number | null;
                /**
                 * @description limit of all results of a unit, as a share of the window: the largest are cut; 0 is no limit
                 * @default 0.5
                 */
                unit_ratio?: number | null;
                /**
                 * @description characters kept of its beginning
                 * @default 8000
                 */
                head_chars?: number | null;
                /**
                 * @description characters kept of its end
                 * @default 8000
                 */
                tail_chars?: number | null;
                /**
                 * @description head and tail are whole lines, unless nothing would be left
                 * @default false
                 */
                whole_lines?: boolean | null;
                /**
                 * @description tools whose results are not cut
                 * @default []
                 */
                except_tools?: string[] | null;
            } | null;
            dedupe?: {
                /**
                 * @description a line replaces an older result of the same resource, unless the newer one is empty or an error
                 * @default true
                 */
                enabled?: boolean | null;
                /**
                 * @description which calls have the same resource: equal `arguments`, the same `resource` in well-known arguments, or equal `fields`
                 * @default arguments
                 * @enum {string|null}
                 */
                identity?: "arguments" | "resource" | "fields" | null;
                /** @description with `identity` `fields`: the arguments that identify a call, by tool */
                fields?: {
                    [key: string]: string[] | null;
                } | null;
                /**
                 * @description with `identity` `fields`: all calls of a tool without `fields` are equal
                 * @default false
                 */
                tool_only?: boolean | null;
                /**
                 * @description results kept of each resource
                 * @default 1
                 */
                keep_last?: number | null;
                /**
                 * @description smaller results are kept
                 * @default 100
                 */
                min_tokens?: number | null;
                /**
                 * @description smaller results are kept; with `omit_fields`, smaller members too
                 * @default 0
                 */
                min_bytes?: number | null;
                /**
                 * @description an older result that is a JSON object, but Gemini's, keeps its small members
                 * @default false
                 */
                omit_fields?: boolean | null;
                /**
                 * @description a call without a result yet replaces older results too
                 * @default false
                 */
                pending?: boolean | null;
                /**
                 * @description results of these tools are replaced, whatever their operation; without lists of operations only they are
                 * @default []
                 */
                allow_tools?: string[] | null;
                /**
                 * @description results of these tools are kept
                 * @default []
                 */
                deny_tools?: string[] | null;
                /**
                 * @description only results of these operations are replaced; an empty list allows all
                 * @default []
                 */
                allow_operations?: ("view_file" | "file_read" | "file_write" | "command_execution" | "search" | "list_dir" | "test_execution" | "other")[] | null;
                /**
                 * @description results of these operations are kept
                 * @default []
                 */
                deny_operations?: ("view_file" | "file_read" | "file_write" | "command_execution" | "search" | "list_dir" | "test_execution" | "other")[] | null;
                /**
                 * @description large arguments of the older calls are omitted too
                 * @default false
                 */
                arguments?: boolean | null;
                /**
                 * @description arguments with more bytes are large
                 * @default 1000
                 */
                argument_bytes?: number | null;
                /**
                 * @description secrets in a resource's name are masked in the line
                 * @default true
                 */
                redact?: boolean | null;
            } | null;
            arguments?: {
                /**
                 * @description large arguments of old calls are omitted
                 * @default false
                 */
                enabled?: boolean | null;
                /**
                 * @description smaller arguments are kept
                 * @default 1000
                 */
                min_bytes?: number | null;
                /**
                 * @description a call is old when messages of this many tokens follow it; at most half of the target
                 * @default 16000
                 */
                after_tokens?: number | null;
                /**
                 * @description operations whose arguments are omitted
                 * @default [
                 *       "file_write"
                 *     ]
                 */
                operations?: ("view_file" | "file_read" | "file_write" | "command_execution" | "search" | "list_dir" | "test_execution" | "other")[] | null;
                /**
                 * @description tools whose arguments are omitted too
                 * @default []
                 */
                tools?: string[] | null;
            } | null;
            trim?: {
                /**
                 * @description results are shortened by their distance from the end of the session
                 * @default false
                 */
                enabled?: boolean | null;
                /**
                 * @description a session is also due when its view reaches `floor_ratio`; with `cache`, when the cache is cold
                 * @default false
                 */
                eager?: boolean | null;
                /**
                 * @description of a result with text and media, a line replaces only the text; if false, all of it
                 * @default false
                 */
                keep_media?: boolean | null;
                /**
                 * @description smaller results are kept
                 * @default 100
                 */
                min_tokens?: number | null;
                /**
                 * @description a view below this share of the window is not trimmed
                 * @default 0.25
                 */
                floor_ratio?: number | null;
                /**
                 * @description results this near to the end stay whole
                 * @default 16000
                 */
                hot_zone_min_tokens?: number | null;
                /**
                 * @description the same as a share of the window; the larger of the two counts
                 * @default 0.05
                 */
                hot_zone_ratio?: number | null;
                /**
                 * @description limit of the hot zone as a share of the target; 0 is no limit
                 * @default 0.5
                 */
                hot_zone_max_ratio?: number | null;
                /**
                 * @description characters kept of head and of tail next to the hot zone
                 * @default 2000
                 */
                bookend_max_chars?: number | null;
                /**
                 * @description the same at the end of the span; beyond it, one line replaces a result
                 * @default 256
                 */
                bookend_min_chars?: number | null;
                /**
                 * @description bookends shrink in this many steps, to keep the provider's cache; 0 shrinks them at each compaction
                 * @default 8
                 */
                bookend_sizes?: number | null;
                /**
                 * @description length of the span, as a share of the window
                 * @default 0.4
                 */
                degradation_span_ratio?: number | null;
                /**
                 * @description widens the hot zone for non-reproducible results
                 * @default 1
                 */
                extended_retention_multiplier?: number | null;
                /** @description how hard it is to get a tool's result again; an ephemeral result gets the shortest line */
                categories?: {
                    [key: string]: "rereadable" | "non-reproducible" | "ephemeral" | "computational" | null;
                } | null;
            } | null;
            budget?: {
                /**
                 * @description placeholders replace the oldest results above a limit of all results
                 * @default false
                 */
                enabled?: boolean | null;
                /**
                 * @description a session is also due when its view reaches that limit, which may be before `trigger`
                 * @default false
                 */
                eager?: boolean | null;
                /**
                 * @description the limit; 0 uses `ratio`
                 * @default 0
                 */
                tokens?: ((number | 0 | unknown) | null) | 0 | unknown;
                /**
                 * @description the limit as a share of the window, between `min_tokens` and `max_tokens`
                 * @default 0.25
                 */
                ratio?: number | null;
                /**
                 * @description lowest limit that `ratio` gives; at most `max_tokens`
                 * @default 20000
                 */
                min_tokens?: number | null;
                /**
                 * @description highest limit that `ratio` gives
                 * @default 60000
                 */
                max_tokens?: number | null;
            } | null;
            whitespace?: {
                /**
                 * @description runs of white space in old results are collapsed
                 * @default false
                 */
                enabled?: boolean | null;
                /**
                 * @description smaller results are kept
                 * @default 100
                 */
                min_tokens?: number | null;
            } | null;
            summarise?: {
                /**
                 * @description retained facts and a summary replace the oldest units
                 * @default true
                 */
                enabled?: boolean | null;
                /**
                 * @description the operator's name of the model that writes the summary; empty: `extract` writes it
                 * @default
                 */
                model?: string | null;
                /**
                 * @description how the model is asked: by Varve's own request (`sections`) or a system's
                 * @default sections
                 * @enum {string|null}
                 */
                style?: "sections" | "codelia" | "falai" | "cortex" | null;
                /**
                 * @description while the model has not written the summary: `extract`, a summary without a model; `keep`, the messages; `drop`, the messages, and after the model failed a notice
                 * @default extract
                 * @enum {string|null}
                 */
                fallback?: "extract" | "keep" | "drop" | null;
                /**
                 * @description summaries, each of its own range, before the oldest are merged; 1 writes one of all again each time; 0 is 4 for a model with Varve's own request, else 1
                 * @default 0
                 */
                segments?: number | null;
                /**
                 * @description share of the window above which the shortened view is summarised; 0 uses the target
                 * @default 0
                 */
                over?: number | null;
                /**
                 * @description everything that need not be kept is summarised; if false, as few of the oldest units as reach the target
                 * @default false
                 */
                all?: boolean | null;
                /**
                 * @description the user's newest turns that are kept
                 * @default 1
                 */
                keep_turns?: number | null;
                /**
                 * @description the newest messages that are kept
                 * @default 4
                 */
                keep_messages?: number | null;
                /**
                 * @description fewer old tokens are not summarised
                 * @default 2000
                 */
                min_tokens?: number | null;
                /**
                 * @description limit of the written summary
                 * @default 1200
                 */
                max_tokens?: number | null;
                /**
                 * @description share of the window for the user's own words before the summary; 0 is none
                 * @default 0.1
                 */
                words_ratio?: number | null;
                /**
                 * @description share of the window for the index of names (paths, symbols, ids), at most 8,000 tokens; 0 is none
                 * @default 0.03
                 */
                names_ratio?: number | null;
                /**
                 * @description share of the window for lines of results and written files that say what names are, failures and outcomes included, and three quarters as much for what the agent wrote last, whole, and six fifths for its sentences that say most; 0 is none
                 * @default 0.06
                 */
                lines_ratio?: number | null;
                /**
                 * @description what a model is asked to write; empty is the built-in text
                 * @default
                 */
                prompt?: string | null;
                /**
                 * @description further instructions for a model
                 * @default []
                 */
                directives?: string[] | null;
                /**
                 * @description a model is asked for facts to keep word for word
                 * @default true
                 */
                retain?: boolean | null;
                /**
                 * @description which facts a model is asked for; empty is the built-in text
                 * @default
                 */
                retain_prompt?: string | null;
                /**
                 * @description further instructions about these facts
                 * @default []
                 */
                retain_directives?: string[] | null;
            } | null;
            truncate?: {
                /**
                 * @description the oldest units are dropped if there is no summary of them; the log keeps them
                 * @default true
                 */
                enabled?: boolean | null;
            } | null;
            pins?: {
                /**
                 * @description text between `[[pin]]` and `[[/pin]]` in a message of the system, a developer or the user is pinned: every checkpoint has it verbatim
                 * @default true
                 */
                markers?: boolean | null;
                /**
                 * @description regular expressions (RE2): a matching line of a text of `pins.roles` is pinned
                 * @default []
                 */
                patterns?: string[] | null;
                /**
                 * @description whose texts are searched: system (also developers), user, assistant, tool (whoever can write into a result then decides what is pinned)
                 * @default [
                 *       "system",
                 *       "user"
                 *     ]
                 */
                roles?: ("system" | "user" | "assistant" | "tool")[] | null;
                /**
                 * @description whose texts are pinned whole
                 * @default []
                 */
                whole?: ("system" | "user" | "assistant" | "tool")[] | null;
                /**
                 * @description limit of pinned texts whose messages have left the view, at most a quarter of the target: callers' pins come first, the newest first; of the rest only refs are named
                 * @default 2000
                 */
                max_tokens?: number | null;
            } | null;
            wording?: {
                /**
                 * @description between head and tail of an oversized result
                 * @default [... trimmed -- all {chars} characters, ~{tokens} tokens: read_result {ref} ...]
                 */
                cap?: string | null;
                /**
                 * @description before the head of an old result that is non-reproducible or computational
                 * @default
                 */
                bookend_head?: string | null;
                /**
                 * @description between head and tail of an old result
                 * @default [... trimmed -- all {chars} characters, ~{tokens} tokens: read_result {ref} ...]
                 */
                bookend?: string | null;
                /**
                 * @description in place of a superseded result; `seq` is that of the newer result
                 * @default [Superseded by a newer result of the same call at message {seq} -- this one: read_result {ref}]
                 */
                stub?: string | null;
                /**
                 * @description in place of an old result
                 * @default [Tool result trimmed -- {tool}: "{preview}" -- in full: read_result {ref}]
                 */
                placeholder?: string | null;
                /**
                 * @description the same for a result that is easy to get again; empty uses `placeholder`
                 * @default
                 */
                placeholder_again?: string | null;
                /**
                 * @description in place of an old result that was worth little; not longer than the other lines
                 * @default [Tool result cleared -- read_result {ref}]
                 */
                clear?: string | null;
                /**
                 * @description around a summary
                 * @default [Summary of messages {first} to {last}, written by a machine: a record, not an instruction. In full: get_messages {ref}; a result (r...): read_result; to find text: search_session.{results}]
                 *     {text}
                 */
                summary?: string | null;
                /**
                 * @description in place of dropped units
                 * @default [Messages {first} to {last} were left out: {messages} messages, in full: get_messages {ref}; a result (r...): read_result.{results}]
                 */
                truncated?: string | null;
            } | null;
        } | null;
        /** @description how often each layer of a policy was changed */
        PolicyVersion: {
            tenant: number;
            /** @description 0 if the session has no own layer */
            session: number;
        };
        /** @description an error (RFC 9457); clients of OpenAI's API read `error` */
        Problem: {
            /** @constant */
            type: "about:blank";
            title: string;
            status: number;
            /** @description the problem, and what would be right */
            detail: string;
            /** @description the request's path */
            instance: string;
            /**
             * @description one of a closed list
             * @enum {unknown}
             */
            code: "invalid_json" | "unknown_field" | "invalid_cursor" | "invalid_idempotency_key" | "unauthorized" | "forbidden" | "token_not_allowed" | "scope_missing" | "key_not_allowed" | "tenant_suspended" | "not_found" | "method_not_allowed" | "format_not_available" | "request_timeout" | "session_exists" | "session_differs" | "seq_not_reached" | "key_ended" | "key_rotated" | "tenant_exists" | "tenant_deleted" | "legal_hold" | "session_archived" | "window_exceeded" | "checkpoint_pruned" | "stale_expected_seq" | "stale_policy_version" | "body_too_large" | "message_too_large" | "too_many_messages" | "unsupported_media_type" | "range_not_satisfiable" | "busy" | "invalid_request" | "invalid_message" | "other_format" | "needs_repair" | "json_too_complex" | "unsupported_source" | "unknown_model" | "client_id_reused" | "idempotency_key_reused" | "session_full" | "too_many_tokens" | "too_many_keys" | "too_many_pins" | "view_cannot_fit" | "too_heavy" | "damaged" | "internal" | "unavailable" | "over_capacity" | "tenant_busy" | "rate_limited" | "quota_exceeded" | "session_busy" | "session_thawing" | "read_only" | "timed_out" | "import_taken" | "import_ended" | "replay_live" | "upload_offset" | "upload_taken" | "upload_ended" | "digest_mismatch" | "too_many_uploads" | "too_many_webhooks" | "webhook_disabled";
            request_id: string;
            /** @description whether the same request may succeed later */
            retryable: boolean;
            /** @description with `stale_expected_seq` and `seq_not_reached`: the session's last seq */
            current_seq?: number;
            /** @description with `view_cannot_fit` and `window_exceeded`: the smallest possible number */
            minimum_tokens?: number;
            /** @description with `scope_missing`: the scope that the key lacks */
            missing_scope?: components["schemas"]["KeyScope"];
            /** @description all problems, up to 20 */
            errors?: {
                /** @description a JSON pointer into the body, or the name of a parameter or header */
                pointer: string;
                /** @description one of the codes above, or for a policy `wrong_type`, `out_of_range`, `invalid_text`, `unknown_value`, `invalid_template`, `invalid_pattern` or `contradiction` */
                code: string;
                detail: string;
            }[];
            error: components["schemas"]["ClientError"];
        };
        /** @description a message in the provider's format, byte for byte; for the Responses API an item, for Gemini a content */
        ProviderMessage: {
            [key: string]: unknown;
        };
        /** @description identifies a result in its session */
        Ref: string;
        /** @description a difference between a view and the log, made because the provider would refuse what is in the log */
        Repair: {
            /** @description the rule that would be broken: V-A1 */
            rule: string;
            /** @description what was done: result_synthesized */
            kind: string;
            /** @description of the repaired message, 0 if it is not one message */
            seq: number;
            detail: string;
        };
        /** @description the answer to a replacement */
        Replaced: {
            /** @description how many messages were superseded */
            superseded: number;
            /** @description how many messages were appended */
            appended: number;
            /** @description of the first appended message; null if there is none */
            first_seq: number | null;
            /** @description of the session */
            last_seq: number;
            /** @description estimated tokens of the appended messages */
            tokens: components["schemas"]["Tokens"];
            /** @description estimated tokens of the view after it */
            context_tokens: components["schemas"]["Tokens"];
            /** @description of the log after them */
            total_tokens: components["schemas"]["Tokens"];
            /** @description whether a compaction was queued */
            compaction: components["schemas"]["Compaction"];
            /** @description why the usage that was reported is not used; absent if it is, or if none was */
            usage_ignored?: string;
            /** @description what views will repair of the new messages, or leave out; absent for nothing */
            warnings?: components["schemas"]["Warning"][];
        };
        /** @description what a compaction looked at, what it did and why, and what is left to worry about */
        Report: {
            from: components["schemas"]["From"];
            /** @description of the log */
            messages_total: number;
            /** @description messages of which a part was changed */
            messages_compacted: number;
            /** @description parts by what was done to them */
            actions: {
                [key: string]: number;
            };
            /** @description parts by the field of the policy that decided */
            reasons: {
                [key: string]: number;
            };
            results_persisted: number;
            /** @description of the messages that the plan was made of */
            bytes_before: number;
            bytes_after: number;
            view_tokens_before: number;
            /** @description of the view; below 0 if a compaction from the log restored more than it removed */
            tokens_saved: number;
            /** @description results that newer ones for their resource made superfluous */
            stale: components["schemas"]["Stale"];
            /** @description what was decided about the tool results and large calls that no summary has taken; absent in runs of engines before 4 */
            decisions?: components["schemas"]["Decisions"];
            /** @description the beginning of the view that is kept byte for byte, so that the provider's cache remains valid */
            kept_prefix: components["schemas"]["KeptPrefix"];
            /** @description what failed, so that the compaction continued without it */
            failed_open: string[];
            /** @description by how much the view is still too large for its window */
            overflow_risk: components["schemas"]["OverflowRisk"] | null;
        };
        /** @description describes a persisted tool result without its content */
        Result: {
            ref: components["schemas"]["Ref"];
            /** @description 0 of an uploaded result, which is part of no message */
            seq: number;
            /** @description of an uploaded result its number */
            part: number;
            tool: string;
            call_id: string;
            /** @description the category of its tool in the policy */
            category: string;
            media_type: string;
            bytes: number;
            lines: number;
            tokens: number;
            /** @description of its bytes, in hexadecimal */
            sha256: components["schemas"]["SHA256"];
            created_at: components["schemas"]["Time"];
        };
        /** @description when sessions expire; what is null or absent never lets them */
        Retention: {
            /** @description after the last append or, without one, after the creation; reads do not count */
            idle_seconds?: number | null;
            /** @description after the creation */
            max_age_seconds?: number | null;
            /**
             * @description what becomes of expired sessions; erase if it is absent
             * @enum {unknown}
             */
            then?: "erase" | "archive";
            /** @description how long archives are kept, since they were made or, if that is later, since the session would have expired; only with `"then": "archive"` */
            archive_max_age_seconds?: number | null;
        };
        RetentionState: {
            /** @description after the last append or, without one, after the creation; reads do not count */
            idle_seconds: number | null;
            /** @description after the creation */
            max_age_seconds: number | null;
            /**
             * @description what becomes of expired sessions; erase if it is absent
             * @enum {unknown}
             */
            then: "erase" | "archive";
            /** @description how long archives are kept, since they were made or, if that is later, since the session would have expired; only with `"then": "archive"` */
            archive_max_age_seconds: number | null;
        };
        /** @description one compaction: what asked for it, what it did, and how it ended */
        Run: {
            /** Format: uuid */
            id: string;
            /** @description Cause is threshold, hard, idle, manual, sweep, follow_up, recompaction, restore, damage or summary */
            trigger: components["schemas"]["Trigger"];
            /** @description `unchanged`: nothing to do; `postponed`: waiting is cheaper; `superseded`: another run ended first */
            state: components["schemas"]["RunState"];
            /** @description the checkpoint that the run started from */
            base_checkpoint: number | null;
            /** @description the checkpoint that the run made */
            checkpoint: number | null;
            /** @description the last message that it covers */
            through_seq: number | null;
            tokens_before: number | null;
            /** @description of the view that the run made */
            tokens_after: number | null;
            results_persisted: number | null;
            bytes_persisted: number | null;
            stages: components["schemas"]["Stage"][];
            /** @description milliseconds by step */
            timings_ms: {
                [key: string]: number;
            };
            /** @description why now, or why not yet, in a sentence */
            reason: string;
            /** @description empty before the decision */
            why: components["schemas"]["RunWhy"];
            /** @description empty until the run ends */
            report: components["schemas"]["RunReport"];
            error: string | null;
            triggered_at: components["schemas"]["Time"];
            started_at: components["schemas"]["Time"] | null;
            finished_at: components["schemas"]["Time"] | null;
        };
        RunReport: components["schemas"]["Report"] | Record<string, never>;
        /**
         * @description the state of a run
         * @enum {unknown}
         */
        RunState: "queued" | "running" | "done" | "unchanged" | "postponed" | "superseded" | "failed";
        RunWhy: components["schemas"]["Why"] | Record<string, never>;
        SHA256: string;
        /** @description a session and its size */
        Session: {
            id: string;
            /** @description null until the first append or PUT names one */
            format: components["schemas"]["Format"] | null;
            /** @description empty if it is not set */
            model: string;
            window_tokens: components["schemas"]["Tokens"];
            /** @description the origin of the window */
            window_source: components["schemas"]["WindowSource"];
            overhead_tokens: components["schemas"]["Tokens"];
            metadata: components["schemas"]["Metadata"];
            /** @description with `include=policy`; it would be most of the answer */
            policy?: components["schemas"]["Policy"];
            policy_version: components["schemas"]["PolicyVersion"];
            last_seq: number;
            /** @description of the view, estimated */
            context_tokens: components["schemas"]["Tokens"];
            /** @description of the log, estimated */
            total_tokens: components["schemas"]["Tokens"];
            /** @description the number of exactly counted tokens for each estimated token */
            calibration: number;
            /** @description what the last reported usage counted beyond the estimate: tools, a system prompt; negative if it counted less */
            unseen_tokens: number;
            /** @description view and overhead, times `calibration`, plus `unseen_tokens`; compared with the triggers */
            calibrated_tokens: components["schemas"]["Tokens"];
            /** @description null if none was reported yet */
            last_usage: components["schemas"]["Usage"] | null;
            /** @description what the session is a fork of; absent for what is no fork */
            forked_from?: components["schemas"]["ForkedFrom"];
            /** @description when the session expires in place of the tenant's retention; absent if it has none of its own; lists omit it */
            retention?: components["schemas"]["RetentionState"];
            /** @description when the session expires if nothing is appended; absent for never; lists omit it. A legal hold keeps it nevertheless */
            expires_at?: components["schemas"]["Time"];
            /** @description what the settings leave open, such as the window of a model that is not known; lists omit it */
            warnings?: components["schemas"]["Warning"][];
            /** @description the number of the newest checkpoint, 0 without one */
            checkpoint: number;
            /** @description why the session is not compacted, absent if nothing failed since its last compaction; lists omit it */
            failing?: components["schemas"]["Failing"];
            created_at: components["schemas"]["Time"];
            last_append_at: components["schemas"]["Time"] | null;
        };
        /** @description every member is optional */
        SessionChange: {
            /**
             * @description the provider has refused the view as too long: `calibration` rises until what was sent counts as more than the window, and a compaction becomes due
             * @constant
             */
            refused?: "context_length_exceeded";
            /** @description what the provider counted in the request that it refused, if it said that */
            refused_tokens?: number;
        } & {
            /** @description the registry of models has its window, unless `window_tokens` is set */
            model?: string;
            /** @description the model's context window */
            window_tokens?: number;
            /** @description tokens that are sent in addition to the messages, such as tool definitions; must be less than the window */
            overhead_tokens?: number;
            metadata?: components["schemas"]["Metadata"];
            /** @description merged (RFC 7396) into the session's own layer; null removes the layer */
            policy?: components["schemas"]["Policy"];
            /** @description when the session expires, in place of the tenant's retention (`{}` is never); null is the tenant's again. The key needs the scope `erase` */
            retention?: components["schemas"]["Retention"] | null;
        };
        /** @description what a stage of the engine did */
        Stage: {
            stage: string;
            /** @description false if the stage is switched off or was not needed */
            entered: boolean;
            actions: number;
            tokens_saved: number;
            /** @description why the stage failed and was skipped */
            error?: string;
        };
        /** @description has the results that were replaced because newer ones for their resource followed */
        Stale: {
            /** @description results */
            count: number;
            /** @description the different resources that they are about */
            resources_total?: number;
            /** @description the resources as tool:primary[:secondary], in order, secrets masked */
            resources: string[];
        };
        /**
         * Format: date-time
         * @description in UTC
         */
        Time: string;
        Tokens: number;
        /** @description with a `call_id` of the request `format` and `messages`, else `text`, `structured` and `images` */
        ToolAnswer: {
            tool: string;
            is_error: boolean;
            format?: components["schemas"]["Format"];
            messages?: components["schemas"]["ProviderMessage"][];
            text?: string;
            structured?: Record<string, never>;
            images?: {
                media_type: string;
                /** @description in base64 */
                data: string;
            }[];
        };
        /** @description names of tools by the tools' own names */
        ToolNameMap: {
            [key: string]: string;
        };
        /** @enum {unknown} */
        Trigger: "threshold" | "hard" | "idle" | "manual" | "sweep" | "follow_up" | "recompaction" | "restore" | "damage" | "summary";
        /** @description a result that was uploaded, with the text that stands for it in a message */
        UploadedResult: {
            ref: components["schemas"]["Ref"];
            /** @description 0 of an uploaded result, which is part of no message */
            seq: number;
            /** @description of an uploaded result its number */
            part: number;
            tool: string;
            call_id: string;
            /** @description the category of its tool in the policy */
            category: string;
            media_type: string;
            bytes: number;
            lines: number;
            tokens: number;
            /** @description of its bytes, in hexadecimal */
            sha256: components["schemas"]["SHA256"];
            created_at: components["schemas"]["Time"];
            /** Format: uuid */
            upload: string;
            /** @description to be put into the message: all of a small result; head and tail of a large one around a line that names it; of what is no text a line that says what it is */
            text: string;
        };
        /** @description the tokens that the provider reported for the request whose answer is the assistant's last message */
        Usage: {
            model?: string;
            /** @description neither written to the prompt cache nor read from it */
            input_tokens: number;
            cache_creation_tokens?: number;
            cache_read_tokens?: number;
            output_tokens?: number;
        };
        /**
         * @description what a decision comes to
         * @enum {unknown}
         */
        Verdict: "now" | "postponed" | "unchanged";
        /** @description what to send to the model */
        View: {
            session: string;
            /** @description null until the session has one */
            format: components["schemas"]["FormatOrNone"];
            /** @description 0 if nothing was compacted yet */
            checkpoint: number;
            /** @description the last message that the checkpoint covers */
            through_seq: number;
            last_seq: number;
            tokens: components["schemas"]["Tokens"];
            /** @description the session's window, by the provider's count */
            window_tokens: number;
            /** @description whether `tokens` and the overhead do not fit into the window */
            over_window: boolean;
            /** @description what `max_tokens` or `fit` omits, if anything */
            omitted?: components["schemas"]["Omitted"];
            /** @description what `fit` leaves the beginning and the end of, if anything */
            cut?: components["schemas"]["Cut"][];
            /**
             * @description the last valid view, because the newest is broken; absent otherwise
             * @constant
             */
            degraded?: true;
            /** @description how the view differs from the log, if it was repaired */
            repairs?: components["schemas"]["Repair"][];
            /** @description the names of tools in the view by those in the log, where they differ; the request must define the tools under these names */
            tool_names?: components["schemas"]["ToolNameMap"];
            /** @description the system prompt, in formats that separate it from the messages */
            system?: unknown;
            messages: components["schemas"]["ProviderMessage"][];
        };
        /** @description what the caller should know of a request that was carried out */
        Warning: {
            /** @description into the body, or the name of a query parameter */
            pointer: string;
            code: string;
            detail: string;
        };
        /** @description why a session is compacted now, or why not yet: the figures that decided */
        Why: {
            decision: components["schemas"]["Verdict"];
            cause: string;
            /** @description what is sent to the model, overhead included */
            context_tokens: components["schemas"]["Tokens"];
            trigger_tokens: components["schemas"]["Tokens"];
            hard_tokens: components["schemas"]["Tokens"];
            /** @description `context_tokens` times `calibration` plus `unseen_tokens` is compared with the other two */
            calibration: number;
            /** @description plus this: what the caller's usage counts beyond the estimate */
            unseen_tokens: number;
            /** @description the state of the provider's prompt cache, if the policy considers it */
            cache?: components["schemas"]["Cache"];
            /** @description what the compaction saves and costs, in units of the price of an uncached input token, if the policy considers it */
            economy?: components["schemas"]["Economy"];
        };
        /**
         * @description the source of a session's context window
         * @enum {unknown}
         */
        WindowSource: "request" | "model" | "default";
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type Appended = components['schemas']['Appended'];
export type Cache = components['schemas']['Cache'];
export type ClientError = components['schemas']['ClientError'];
export type Compaction = components['schemas']['Compaction'];
export type Cut = components['schemas']['Cut'];
export type Decisions = components['schemas']['Decisions'];
export type Economy = components['schemas']['Economy'];
export type Event = components['schemas']['Event'];
export type EventType = components['schemas']['EventType'];
export type Failing = components['schemas']['Failing'];
export type ForkedFrom = components['schemas']['ForkedFrom'];
export type Format = components['schemas']['Format'];
export type FormatOrNone = components['schemas']['FormatOrNone'];
export type From = components['schemas']['From'];
export type Hit = components['schemas']['Hit'];
export type KeptPrefix = components['schemas']['KeptPrefix'];
export type KeyScope = components['schemas']['KeyScope'];
export type Message = components['schemas']['Message'];
export type Metadata = components['schemas']['Metadata'];
export type NewSession = components['schemas']['NewSession'];
export type Omitted = components['schemas']['Omitted'];
export type OverflowRisk = components['schemas']['OverflowRisk'];
export type Policy = components['schemas']['Policy'];
export type PolicyVersion = components['schemas']['PolicyVersion'];
export type Problem = components['schemas']['Problem'];
export type ProviderMessage = components['schemas']['ProviderMessage'];
export type Ref = components['schemas']['Ref'];
export type Repair = components['schemas']['Repair'];
export type Replaced = components['schemas']['Replaced'];
export type Report = components['schemas']['Report'];
export type Result = components['schemas']['Result'];
export type Retention = components['schemas']['Retention'];
export type RetentionState = components['schemas']['RetentionState'];
export type Run = components['schemas']['Run'];
export type RunReport = components['schemas']['RunReport'];
export type RunState = components['schemas']['RunState'];
export type RunWhy = components['schemas']['RunWhy'];
export type Sha256 = components['schemas']['SHA256'];
export type Session = components['schemas']['Session'];
export type SessionChange = components['schemas']['SessionChange'];
export type Stage = components['schemas']['Stage'];
export type Stale = components['schemas']['Stale'];
export type Time = components['schemas']['Time'];
export type Tokens = components['schemas']['Tokens'];
export type ToolAnswer = components['schemas']['ToolAnswer'];
export type ToolNameMap = components['schemas']['ToolNameMap'];
export type Trigger = components['schemas']['Trigger'];
export type UploadedResult = components['schemas']['UploadedResult'];
export type Usage = components['schemas']['Usage'];
export type Verdict = components['schemas']['Verdict'];
export type View = components['schemas']['View'];
export type Warning = components['schemas']['Warning'];
export type Why = components['schemas']['Why'];
export type WindowSource = components['schemas']['WindowSource'];
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
