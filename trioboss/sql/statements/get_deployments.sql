-- The versions of an app that were deployed, the last one first; of all apps, if :label is null.
SELECT label, digest, declaration, deployed_on FROM trioboss.deployment
WHERE :label::text IS NULL OR label = :label
ORDER BY generation DESC, deployed_on DESC;
