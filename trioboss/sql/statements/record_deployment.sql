-- Write down that a version of an app is deployed. A version that was deployed before is the last one again.
INSERT INTO trioboss.deployment (label, digest, generation, declaration)
SELECT :label::text, :digest::text, coalesce(max(d.generation), 0) + 1, :declaration::jsonb
FROM trioboss.deployment d WHERE d.label = :label
ON CONFLICT (label, digest) DO UPDATE
SET generation = excluded.generation, declaration = excluded.declaration, deployed_on = excluded.deployed_on;
