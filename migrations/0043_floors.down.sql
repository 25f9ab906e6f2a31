ALTER TABLE sessions
    DROP COLUMN floor_hides,
    DROP COLUMN floor_engine;
