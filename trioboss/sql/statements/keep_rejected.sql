-- Put the rows of a stage that have a problem aside. `ahead` is how many rows the stages before it have.
INSERT INTO trioboss.rejected (load, position, problem, job)
SELECT :load::text, :ahead::bigint + position, problem, data FROM trioboss.stage_row WHERE problem IS NOT NULL;
