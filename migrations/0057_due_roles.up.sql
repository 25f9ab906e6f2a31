-- An API writes down what is due for its tenant; workers reach all of it, as with jobs. The rounds are the workers'.
ALTER TABLE due_sessions ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON due_sessions
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
CREATE POLICY every_tenant ON due_sessions TO varve_worker USING (true) WITH CHECK (true);

ALTER TABLE chores ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON chores
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
CREATE POLICY every_tenant ON chores TO varve_worker USING (true) WITH CHECK (true);

ALTER TABLE rounds ENABLE ROW LEVEL SECURITY;
CREATE POLICY workers ON rounds TO varve_worker USING (true) WITH CHECK (true);
