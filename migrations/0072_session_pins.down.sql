DROP TABLE session_pins;
