DROP POLICY workers ON rounds;
ALTER TABLE rounds DISABLE ROW LEVEL SECURITY;
DROP POLICY every_tenant ON chores;
DROP POLICY tenant ON chores;
ALTER TABLE chores DISABLE ROW LEVEL SECURITY;
DROP POLICY every_tenant ON due_sessions;
DROP POLICY tenant ON due_sessions;
ALTER TABLE due_sessions DISABLE ROW LEVEL SECURITY;
