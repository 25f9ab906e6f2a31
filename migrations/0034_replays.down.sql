DROP TABLE replay_outcomes, replay_sessions, replays;
