ALTER TABLE tenants
    DROP COLUMN most_age_seconds,
    DROP COLUMN most_idle_seconds;
