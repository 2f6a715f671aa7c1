trioboss create-queue email > /dev/null
id=$(trioboss send email '{"to": "ann"}')
# begin why
trioboss why email $id      # one sentence: why this job is not running
trioboss show email $id     # the same with its attempts, their stacks, and the backlog of its key
# end why
