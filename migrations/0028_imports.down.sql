DROP TABLE import_lines, imports;
