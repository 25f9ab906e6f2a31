DROP INDEX session_holds_newest;
