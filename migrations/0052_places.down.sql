DROP TRIGGER job_now ON river_job;
DROP TRIGGER job_place_updated ON river_job;
DROP TRIGGER job_place_inserted ON river_job;
DROP FUNCTION job_now();
DROP FUNCTION job_place();
DROP INDEX job_places;
