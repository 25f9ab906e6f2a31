-- What a floor is worth. floor_hides is the highest threshold that the compaction could not bring the session below: 0
-- for none, 1 for the trigger, 2 for the hard limit. floor_engine is the version of the engine that found it; the
-- floors from before end with the next append, and are found again if they still hold.
ALTER TABLE sessions
    ADD COLUMN floor_hides  smallint NOT NULL DEFAULT 0,
    ADD COLUMN floor_engine integer  NOT NULL DEFAULT 0;
