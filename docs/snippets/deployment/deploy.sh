# Roles belong to the whole server, which other tests use, too.
trap 'kill $(jobs -p) 2> /dev/null || true; wait; trioboss psql -c "
    REASSIGN OWNED BY bakery_deploy TO CURRENT_USER;
    DROP OWNED BY bakery_deploy, bakery_jobs, bakery_web, bakery_dashboard;
    DROP ROLE bakery_deploy, bakery_jobs, bakery_web, bakery_dashboard;" > /dev/null' EXIT

# The page shows the output between two of these lines below its commands.
echo "-- roles"
# begin roles
trioboss psql -f roles.sql > /dev/null
trioboss migrate
trioboss grants --admin bakery_deploy --worker bakery_jobs --producer bakery_web \
    --reader bakery_dashboard --apply > /dev/null
# end roles

DEPLOY="$TRIOBOSS_DSN user=bakery_deploy" JOBS="$TRIOBOSS_DSN user=bakery_jobs"
WEB="$TRIOBOSS_DSN user=bakery_web" DASHBOARD="$TRIOBOSS_DSN user=bakery_dashboard"

echo "-- first"
# begin first
TRIOBOSS_DSN=$DEPLOY trioboss migrate version_1:app
TRIOBOSS_DSN=$JOBS trioboss worker version_1:app --no-migrate & old=$!
TRIOBOSS_DSN=$WEB trioboss send bread '{"kind": "rye"}' > /dev/null
# end first

echo "-- plan"
# begin plan
TRIOBOSS_DSN=$DEPLOY trioboss migrate version_2:app --plan
# end plan
echo "-- second"
# begin second
TRIOBOSS_DSN=$DEPLOY trioboss migrate version_2:app
# end second

# begin replace
TRIOBOSS_DSN=$JOBS trioboss worker version_2:app --no-migrate --health "$PORT" & new=$!
until curl --fail --silent --output /dev/null "http://127.0.0.1:$PORT/ready"; do sleep 0.2; done
kill -TERM $old
wait $old
# end replace
TRIOBOSS_DSN=$WEB trioboss send bread '{"kind": "white"}' > /dev/null
until [ "$(TRIOBOSS_DSN=$DASHBOARD trioboss jobs bread | grep -c completed)" = 2 ]; do sleep 0.3; done

echo "-- back"
# begin back
TRIOBOSS_DSN=$DEPLOY trioboss migrate version_1:app --prune
# end back
kill -TERM $new
wait $new
TRIOBOSS_DSN=$WEB trioboss send morning > /dev/null

echo "-- rest"
# begin rest
TRIOBOSS_DSN=$JOBS trioboss worker version_2:app -q morning --no-migrate & rest=$!
# until no job is ready, blocked, deferred or active
until TRIOBOSS_DSN=$DASHBOARD trioboss queues | grep -q 'morning  *standard  *0  *0  *0  *0 '; do sleep 1; done
kill -TERM $rest
wait $rest
TRIOBOSS_DSN=$DEPLOY trioboss delete-queue morning
# end rest
