DROP TABLE findings;
DROP TABLE verifications;
