DROP TABLE model_spending;
DROP TABLE model_answers;
DROP TABLE summaries;
